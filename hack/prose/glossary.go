// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"regexp"
	"strings"
)

// glossaryPage has the table of the words that are no longer used. Identifiers that the
// project has given up are in test/arch.
const glossaryPage = "docs/reference/glossary.md"

// retiredHeading begins the table of the retired words.
const retiredHeading = "\n## Retired words\n"

// retiredWords are the words that the glossary replaces, with the words in use.
type retiredWords []retiredWord

type retiredWord struct {
	old *regexp.Regexp
	use string
}

// parseRetired reads the table under the heading "Retired words": the first cell lists the old
// words, separated by commas, and the second one the words in use.
func parseRetired(page string) (words retiredWords, err error) {
	_, table, found := strings.Cut(page, retiredHeading)
	if !found {
		return nil, errors.New("the page has no section Retired words")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Not" {
			continue
		}
		var alternatives []string
		for old := range strings.SplitSeq(cells[1], ",") {
			alternatives = append(alternatives, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(old)), " ", `\s+`))
		}
		old, err := regexp.Compile(`(?i)\b(` + strings.Join(alternatives, "|") + `)\b`)
		if err != nil {
			return nil, err
		}
		words = append(words, retiredWord{old, strings.TrimSpace(cells[2])})
	}
	if len(words) == 0 {
		return nil, errors.New("the table of retired words has no rows")
	}
	return words, nil
}

// find returns the retired words of a text.
func (words retiredWords) find(text string) (found []string) {
	for _, w := range words {
		found = append(found, w.old.FindAllString(text, -1)...)
	}
	return found
}

// advice returns which words to use in a text that has retired ones.
func (words retiredWords) advice(text string) string {
	var advice []string
	for _, w := range words {
		for _, old := range w.old.FindAllString(text, -1) {
			advice = append(advice, "the glossary retires "+strings.ToLower(old)+": "+w.use)
		}
	}
	return strings.Join(advice, "; ")
}
