def get_assert(output, context):
    return {"pass": "h" in output, "score": 0.7, "reason": "has an h"}


def other(output, context):
    return output == context["vars"]["x"]
