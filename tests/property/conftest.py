"""How many inputs the properties were tried on, said at the end of a run."""


def pytest_terminal_summary(terminalreporter):
    lines = []
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, outcomes in report.user_properties:
            if name == "inputs":
                each = ", ".join(f"{n:,} {what}" for what, n in sorted(outcomes.items()))
                lines.append(f"{report.nodeid.split('::')[-1]}: {sum(outcomes.values()):,} inputs ({each})")
    if lines:
        terminalreporter.section("inputs tried")
        terminalreporter.write_line("\n".join(lines))
