// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The budgets of an area, in uses per 1,000 words. An area may have one use, however short it is.
const (
	whoBudget    = 3
	nobodyBudget = 1
	longSentence = 25
)

var (
	word     = regexp.MustCompile(`[A-Za-z']+`)
	who      = regexp.MustCompile(`(?i)\b(what|who|whom|whose|whoever|whatever)\b`)
	nobody   = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|nothing|none)\b`)
	headless = regexp.MustCompile(`^\W*(Who|What|Whom|Whoever|Whatever|Of what|In what)\b[^?]*[.;]?$`)
	persons  = regexp.MustCompile(`(?i)\b(he|she|his|her|hers|him|himself|herself|we|our|ours|ourselves)\b`)
)

// sentence is a sentence of a text, without code and links.
type sentence struct {
	// place is file:line.
	place string
	text  string
	// heading is true of a title, which may begin with What.
	heading bool
}

// area is a file, or the strings of a folder, with budgets of its own.
type area struct {
	name      string
	sentences []sentence
	// nameless are API fields with comments that kubectl explain cannot show alone.
	nameless []string
}

// figures count the words of a text, and the uses that the rule of words forbids or bounds.
type figures struct {
	words, who, nobody, headless, persons, retired, long int
}

func (f figures) add(g figures) figures {
	return figures{
		words: f.words + g.words, who: f.who + g.who, nobody: f.nobody + g.nobody, headless: f.headless + g.headless,
		persons: f.persons + g.persons, retired: f.retired + g.retired, long: f.long + g.long,
	}
}

// perThousand returns the uses in 1,000 words.
func (f figures) perThousand(uses int) float64 {
	return 1000 * float64(uses) / float64(max(f.words, 1))
}

// exceeds reports whether the uses are more than the budget in 1,000 words grants.
func (f figures) exceeds(uses, budget int) bool {
	return uses > 1 && uses*1000 > budget*f.words
}

// count returns the figures of one sentence.
func (s sentence) count(retired retiredWords) figures {
	f := figures{
		words:   len(word.FindAllString(s.text, -1)),
		who:     len(who.FindAllString(s.text, -1)),
		nobody:  len(nobody.FindAllString(s.text, -1)),
		persons: len(persons.FindAllString(s.text, -1)),
		retired: len(retired.find(s.text)),
	}
	if !s.heading && headless.MatchString(s.text) {
		f.headless = 1
	}
	if f.words > longSentence {
		f.long = 1
	}
	return f
}

func measure(sentences []sentence, retired retiredWords) (f figures) {
	for _, s := range sentences {
		f = f.add(s.count(retired))
	}
	return f
}

// judge returns the sentences of an area that break the rule, each with its reason. A
// sentence with a word of which the area may have some is named when it has too many.
func judge(a area, retired retiredWords) []string {
	findings := slices.Clone(a.nameless)
	total := measure(a.sentences, retired)
	whoExceeded, nobodyExceeded := total.exceeds(total.who, whoBudget), total.exceeds(total.nobody, nobodyBudget)
	for _, s := range a.sentences {
		f := s.count(retired)
		var reasons []string
		if f.headless > 0 {
			reasons = append(reasons, "begins without a noun")
		}
		if f.persons > 0 {
			reasons = append(reasons, "has a pronoun of a person")
		}
		if f.retired > 0 {
			reasons = append(reasons, retired.advice(s.text))
		}
		if f.who > 0 && whoExceeded {
			reasons = append(reasons, fmt.Sprintf("what/who: %s has %.1f per 1,000 words, at most %d", a.name, total.perThousand(total.who), whoBudget))
		}
		if f.nobody > 0 && nobodyExceeded {
			reasons = append(reasons, fmt.Sprintf("nobody/nothing/none: %s has %.1f per 1,000 words, at most %d", a.name, total.perThousand(total.nobody), nobodyBudget))
		}
		if len(reasons) > 0 {
			findings = append(findings, fmt.Sprintf("%s: %q: %s", s.place, s.text, strings.Join(reasons, "; ")))
		}
	}
	return findings
}
