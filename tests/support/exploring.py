"""How far hypothesis explores state machines: as far as the profile of the session says.

`make test` takes a few examples of each; `make test-chaos` runs the property tests again with the profile
`long`.
"""

from hypothesis import HealthCheck, settings


def machine_settings(steps: int) -> settings:
    """Settings of a state machine; each of its examples costs as much as some of a plain property.

    Args:
        steps: most calls of one example.
    """
    profile = settings.get_profile(settings.get_current_profile_name())
    return settings(
        max_examples=profile.max_examples // 3,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
