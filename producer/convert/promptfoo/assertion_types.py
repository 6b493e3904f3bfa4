"""The assertion types that promptfoo has."""

from typing import Final

TYPES: Final = frozenset(
    {"agent-rubric", "answer-relevance", "bleu", "classifier", "contains", "contains-all", "contains-any"}
    | {
        "contains-html",
        "contains-json",
        "contains-sql",
        "contains-xml",
        "context-faithfulness",
        "context-recall",
    }
    | {
        "context-relevance",
        "conversation-relevance",
        "cost",
        "equals",
        "factuality",
        "finish-reason",
        "g-eval",
    }
    | {
        "gleu",
        "guardrails",
        "icontains",
        "icontains-all",
        "icontains-any",
        "is-html",
        "is-json",
        "is-refusal",
    }
    | {
        "is-sql",
        "is-valid-function-call",
        "is-valid-openai-function-call",
        "is-valid-openai-tools-call",
        "is-xml",
    }
    | {"javascript", "latency", "levenshtein", "llm-rubric", "meteor", "model-graded-closedqa"}
    | {
        "model-graded-factuality",
        "moderation",
        "perplexity",
        "perplexity-score",
        "pi",
        "python",
        "regex",
        "rouge-n",
    }
    | {"ruby", "search-rubric", "similar", "similar:cosine", "similar:dot", "similar:euclidean", "skill-used"}
    | {"starts-with", "tool-call-f1", "trace-error-spans", "trace-span-count", "trace-span-duration"}
    | {"trajectory:goal-success", "trajectory:step-count", "trajectory:tool-args-match"}
    | {"trajectory:tool-sequence", "trajectory:tool-used", "webhook", "word-count"}
)
"""All but those of sets and of comparisons between answers."""
