"""The words by which ordered levels, graded numbers and codes are recognised; docs/schema.md explains them.

A scale is a list of ranks from the lowest to the highest, and a rank is a list of words for it. A column is
read as one scale only if every level is on it and no two levels share a rank, so words that people use for
about the same ("sometimes" and "occasionally") share one: a column with both is left unordered.
"""

from __future__ import annotations

import re


def _ranks(text: str) -> dict[str, float]:
    """Return {word: rank} of a scale written as lines of words with bars between."""
    lines = [line.strip().split("|") for line in text.strip().splitlines()]
    return {word.strip(): float(rank) for rank, words in enumerate(lines) for word in words}


def _words(text: str, between: str | None = None) -> frozenset[str]:
    return frozenset(text.split(between))


#: {name of a scale: {word: rank}}; words are in lower case, with spaces for hyphens and underscores.
SCALES: dict[str, dict[str, float]] = {
    "quality": _ranks("""
        terrible|awful|very poor|very bad|vp
        poor|bad|po|unsatisfactory|inadequate
        below average
        fair|fa|passable|mediocre
        average|typical|ta|ok|okay|satisfactory|adequate|acceptable|sufficient
        above average
        good|gd
        very good|vg
        premium
        excellent|ex|outstanding|superb|ideal|exceptional"""),
    "frequency": _ranks("""
        never|none|not at all
        almost never|hardly ever|very rarely
        rarely|rare|seldom|infrequently
        sometimes|some|occasionally|occasional|occas|now and then|some of the time
        often|frequently|frequent|freq|regularly|regular|regul|fairly often
        usually|very often|mostly|most of the time|generally|almost always|nearly always|heavy
        always|constantly|all the time|every time"""),
    "severity": _ranks("""
        none|absent|normal|no
        minimal|trace|very mild
        mild|slight
        moderate
        marked
        severe|serious
        very severe|critical
        fatal"""),
    "improvement": _ranks("""
        none|no
        slight|some|a little
        moderate
        marked|much
        complete|full"""),
    "share": _ranks("""
        none
        few|a few|hardly any
        some
        half|about half
        most
        almost all|nearly all
        all"""),
    "certainty": _ranks("""
        definitely not|certainly not
        no|probably not
        maybe|perhaps|possibly|partly|partially
        yes|probably
        definitely|certainly"""),
    "size": _ranks("""
        xxs
        xs|extra small|very small|tiny
        s|small|sm
        m|medium|mid size|midsize|med
        l|large|big|lg
        xl|extra large|very large|huge
        xxl|2xl
        xxxl|3xl"""),
    "temperature": _ranks("""
        freezing|very cold
        cold
        cool
        mild
        warm
        hot
        very hot"""),
    "age": _ranks("""
        infant|baby|newborn
        toddler
        child
        adolescent|teenager|teen
        young|young adult|youth
        adult
        middle aged|middle age|middle
        elderly|senior|old|older adult"""),
    "social class": _ranks("""
        lower|lower class
        working|working class
        lower middle|lower middle class
        middle|middle class
        upper middle|upper middle class
        upper|upper class"""),
    "year of study": _ranks("""
        freshman|freshmen
        sophomore
        junior
        senior
        graduate"""),
    "academic rank": _ranks("""
        lecturer|instructor
        asstprof|asst prof|assistant|assistant professor
        assocprof|assoc prof|associate|associate professor
        prof|full|professor|full professor"""),
    "clarity": _ranks("""
        i3
        i2
        i1
        si2
        si1
        vs2
        vs1
        vvs2
        vvs1
        if
        fl"""),
    "education": _ranks("""
        no schooling|no formal schooling|no education|illiterate|none
        preschool|kindergarten
        primary|elementary|grammar|primary school|elementary school|grammar school|some primary
        middle school|junior high|junior high school
        some high school|some secondary|incomplete secondary|less than high school
        high school|hs|hs grad|high school graduate|secondary|secondary school|completed high school
        some college|some university
        associate|associates|associate degree|assoc voc
        assoc acdm
        bachelor|bachelors|bachelor degree|college|college degree|college graduate|university
        some graduate school
        master|masters|master degree|postgraduate|graduate school|graduate degree|advanced degree
        professional|prof school|professional degree
        doctorate|doctoral|phd"""),
}

#: Opposites on either side of a middle: agree and disagree, low and high. A modifier says how far out.
OPPOSITES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("disagree",), ("agree",)),
    (("dissatisfied", "unsatisfied"), ("satisfied",)),
    (("unlikely",), ("likely",)),
    (("unimportant",), ("important",)),
    (("unhappy",), ("happy",)),
    (("oppose", "opposed"), ("support", "favor", "favour", "in favor", "in favour")),
    (("disapprove",), ("approve",)),
    (("dislike",), ("like",)),
    (("unfavorable", "unfavourable"), ("favorable", "favourable")),
    (("negative",), ("positive",)),
    (("decrease", "decreased"), ("increase", "increased")),
    (("worse", "worsened"), ("better", "improved")),
    (("less", "fewer"), ("more",)),
    (("liberal",), ("conservative",)),
    (("difficult", "hard"), ("easy",)),
    (("unsafe",), ("safe",)),
    (("low", "lo"), ("high", "hi")),
    (("small",), ("large", "big")),
    (("weak",), ("strong",)),
    (("light",), ("heavy",)),
    (("few",), ("many",)),
    (("little", "a little"), ("much", "a lot", "lots")),
    (("short",), ("long", "tall")),
    (("slow",), ("fast", "quick")),
    (("thin",), ("thick", "fat")),
    (("narrow",), ("wide", "broad")),
    (("beginner", "novice", "basic"), ("advanced", "expert")),
)

MIDDLE = _words(
    "neutral|neither|undecided|same|the same|about the same|no change|unchanged|equal|equally|mixed|"
    "medium|moderate|mid|med|middle|intermediate|average|normal|some|indifferent|neither agree nor disagree|"
    "neither satisfied nor dissatisfied|neither likely nor unlikely|stable",
    "|",
)

#: Below everything: only beside opposites that are amounts.
NOTHING = frozenset({"none", "no", "zero", "nil", "absent"})
AMOUNTS = frozenset({"low", "small", "weak", "light", "few", "little"})

#: How far out on its side a word lies; without a modifier 3.
MODIFIERS: dict[str, float] = {
    **dict.fromkeys(("not at all", "not"), 0.0),
    **dict.fromkeys(("slightly", "a bit", "mildly", "not very", "not too", "not so", "hardly"), 1.0),
    **dict.fromkeys(("somewhat", "fairly", "moderately", "rather", "pretty", "tend to", "mostly"), 2.0),
    **dict.fromkeys(("very", "strongly", "highly", "definitely", "much", "far"), 4.0),
    **dict.fromkeys(("extremely", "completely", "totally", "absolutely", "entirely"), 5.0),
}

#: Words in the name of a column whose few whole numbers are grades.
GRADES = _words(
    "quality grade score scores rating ratings rated severity stage satisfaction stars star scale "
    "likert opinion opinions agreement importance priority pain health condition tier level rank "
    "pclass religious reliability rate education educ"
)

#: Words in the name of a column of amounts, which are brackets if they are just 1, 2, ..., k.
BRACKETS = _words("income salary wage wages earnings age")

#: Names of columns that number the things that rows are about.
THINGS = _words("index idx row obs case individual subject patient person respondent household nr")

#: Words in the name of a column whose whole numbers are codes without an order.
CODES = _words(
    "zip zipcode postcode postal plz fips msa pmsa sic naics region race religion marital ethnicity "
    "ethnic gender sex country state city county district department dept occupation type group "
    "cluster category code treatment trt diagnosis brand species industry sector mode site center "
    "centre label class target month mon weekday season block batch panel plate plot"
)

#: Words in the name of a column of numbers that may be negative, even if none is.
SIGNED = _words("latitude longitude lat lon lng change difference diff delta profit profits logit")

ZIPS = _words("zip zipcode postcode postal plz")

#: Texts of a cell that say that there is nothing.
MISSING = frozenset(
    {"n/a", "na", "n.a.", "#n/a", "nan", "null", "-", "--", "---", "?", ".", "missing", "not available"}
)

#: Numbers that stand for a missing cell where they lie far from all others.
SENTINELS = frozenset(
    float(sign + digit * length) for sign in ("", "-") for digit in "89" for length in range(2, 7)
) | {-1.0, -9.0, -8.0}

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: str) -> set[str]:
    """Return the words in the name of a column, in lower case: "wineQuality_2" has wine and quality."""
    return {word.lower() for word in _WORDS.findall(name)}
