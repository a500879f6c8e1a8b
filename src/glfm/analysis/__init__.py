"""What people read of a posterior: features, effects, diagnostics, relations, calibration."""
