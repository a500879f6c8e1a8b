"""The scikit-learn estimators: GLFM and Imputer."""
