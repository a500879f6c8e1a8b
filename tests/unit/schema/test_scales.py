"""Orders read from levels: every family of scales, shuffled and in other cases, and what must not be read."""

import random

import pytest

from glfm.schema.scales import plain, read_scale
from glfm.schema.vocabulary import GRADES, MODIFIERS, OPPOSITES, SCALES, words_of

ORDERS = {
    "quality": "Poor|Fair|Good|Very Good|Excellent",
    "abbreviated quality": "Po|Fa|TA|Gd|Ex",
    "cut": "Fair|Good|Very Good|Premium|Ideal",
    "frequency": "never|rarely|sometimes|often|always",
    "abbreviated frequency": "Never|Occas|Regul|Heavy",
    "severity": "none|mild|moderate|severe",
    "certainty": "no|perhaps|yes",
    "size": "S|M|L|XL",
    "education": "Preschool|1st-4th|5th-6th|12th|HS-grad|Some-college|Bachelors|Masters|Doctorate",
    "academic rank": "AsstProf|AssocProf|Prof",
    "agreement": "Strongly disagree|Disagree|Neutral|Agree|Strongly agree",
    "satisfaction": "very dissatisfied|somewhat dissatisfied|satisfied|very satisfied",
    "comparison": "Much worse|worse|average|better|Much better",
    "amount": "none|low|medium|high|very high",
    "modifiers of one stem": "not too happy|pretty happy|very happy",
    "modifiers alone": "not at all|slightly|moderately|very|extremely",
    "Roman numerals": "I|II|III|IV",
    "Roman stages": "Stage I|Stage II|Stage III",
    "rates": "never|1 or 2 times in the last year|Once a month|2 to 3 times a month|Once a week|Every day",
    "rates as adverbs": "yearly|monthly|weekly|daily",
    "open end": "0|1|2|3 or more",
    "ranges": "Under 10|10-19|20-29|30+",
    "money": "Under_$10|$10-19|$20-29|Over_$100",
    "thousands": "Under $1,000|$1,000-1,999|$2,000 or more",
    "thousands as k": "under 500|500-999|1k-2k|2k+",
    "strict bounds": "< 5|5|> 5",
    "touching ranges": "0 to < 200 DM|200 to < 500 DM|>= 500 DM",
    "cut intervals": "[0,10)|[10,20)|[20,30)",
    "nothing and ranges": "Never|Under_25|26-50|Over_75",
    "first to third": "1st|2nd|3rd|10th",
    "units": "5 mg|10 mg|20 mg",
    "longer units": "0.0 mg (placebo)|0.2 mg estrogen|1.0 mg estrogen",
    "numbered words": "1 - Poor|2 - Fair|3 - Good",
    "numbered backwards": "3: low|2: medium|1: high",
}

# Levels without an order, or with one that is not certain.
NOTHING = {
    "colours": "red|green|blue",
    "letters": "A|B|C|D",
    "weekdays": "mon|tue|wed|thu",
    "months": "Jan|Feb|Mar|Apr",
    "groups": "Group 1|Group 2|Group 3",
    "codes": "A12|B7|C3",
    "plots": "P1|P2|P3",
    "numbers and letters": "1a|1b|2a",
    "plain numbers": "1|2|3",
    "zip codes": "02139|10001|94103",
    "dates": "10/1/2010|1/2/2011|3/4/2020",
    "match results": "0-0|0-1|1-1|1-2",
    "overlapping ranges": "0-10|5-15|10-20",
    "backward ranges": "9-1|8-2|7-3",
    "types": "Type I|Type II|Type III",
    "Roman numerals with a gap": "I|II|V",
    "mixed vocabularies": "low|some|heavy",
    "mixed scales": "poor|sometimes|large",
    "a scale's words among others": "good|bad|ugly",
    "cars": "Small|Sporty|Compact|Medium|Large|Van",
    "marital status": "S|M|D|W",
    "hands": "left|right|neither",
    "answers": "Yes|No|Don't know",
    "genotypes": "1/1|1/2|2/2",
    "two levels": "low|high",
    "streets": "High Street|Low Road|Medium Lane",
}
UNSURE = {
    "off the scale": ("Poor|Fair|Good|Other", "a scale of quality but for 'Other'"),
    "no answer": ("low|medium|high|unknown", "modifiers but for 'unknown'"),
    "do not know": ("Agree|Disagree|Strongly agree|Don't know", 'but for "Don\'t know"'),
    "two words of one rank": ("never|sometimes|occasionally|often", "two levels have the same rank"),
    "cases": ("low|Low|high", "two levels have the same rank"),
    "codes of categories": ("1 - White|2 - Black|3 - Asian", "begins with codes"),
    "numbered in another order": ("1 - Poor|2 - Good|3 - Fair", "numbered in another order"),
    "things that are counted": ("1 apple|2 pears|3 dogs", "begins with codes"),
    "ranges and a word": ("< 1 year|1 to 4 years|> 4 years|unemployed", "ranges but for 'unemployed'"),
}


@pytest.mark.parametrize("case", ORDERS)
@pytest.mark.parametrize("change", [str, str.upper, lambda text: text.replace(" ", "_")])
def test_read_in_any_order_and_case(case, change):
    levels = [change(level) for level in ORDERS[case].split("|")]
    shuffled = random.Random(0).sample(levels, len(levels))
    found = read_scale(shuffled)
    assert found is not None
    assert found.levels in (tuple(levels), tuple(levels[::-1])), found


@pytest.mark.parametrize("case", NOTHING)
def test_not_read(case):
    found = read_scale(NOTHING[case].split("|"))
    assert found is None or found.levels is None


@pytest.mark.parametrize("case", UNSURE)
def test_a_hint_where_it_is_not_certain(case):
    text, hint = UNSURE[case]
    found = read_scale(text.split("|"))
    assert found is not None
    assert found.levels is None
    assert hint in found.reason


def test_negation_beside_the_opposite_is_not_placed():
    assert read_scale(["not satisfied", "dissatisfied", "satisfied"]) is None


def test_rates_with_other_units_are_not_ordered_by_their_numbers():
    found = read_scale(["5 times a year", "3 times a month", "2 times a week"])
    assert found.levels == ("5 times a year", "3 times a month", "2 times a week")


def test_more_levels_than_a_scale_has():
    assert read_scale([f"{i} mg" for i in range(21)]) is None


class TestVocabulary:
    @pytest.mark.parametrize("name", SCALES)
    def test_words_can_be_found(self, name):
        assert all(plain(word) == word for word in SCALES[name])

    def test_opposites_are_no_two_things(self):
        for low, high in OPPOSITES:
            assert not set(low) & set(high)

    def test_modifiers_are_not_stems(self):
        stems = {word for pair in OPPOSITES for side in pair for word in side}
        assert not stems & {"very", "not", "somewhat"}
        assert len(set(MODIFIERS.values())) == 5

    def test_words_of_a_name(self):
        assert words_of("wineQuality_2") == {"wine", "quality"}
        assert words_of("ZIP.code") == {"zip", "code"}
        assert words_of("quality") & GRADES
        assert not words_of("equality") & GRADES
