// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	code      = regexp.MustCompile("`[^`]*`")
	link      = regexp.MustCompile(`\]\([^)]*\)`)
	tag       = regexp.MustCompile(`<[^>]*>`)
	item      = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s+`)
	tableRule = regexp.MustCompile(`^[\s|:-]+$`)
	cellEnd   = regexp.MustCompile(`(^|[^\\])\|`)
	// sentenceEnd is followed by the first letter of the next sentence.
	sentenceEnd = regexp.MustCompile(`[.!?]["')*_]*\s+`)
	begins      = regexp.MustCompile("^[\"'(*_\\[]*([A-Z`]|[a-z]+[A-Z])")
	abbreviated = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs)\.\s+$`)
)

// splitSentences returns the sentences of a paragraph, without code and links.
func splitSentences(place, paragraph string) (sentences []sentence) {
	text := tag.ReplaceAllString(link.ReplaceAllString(code.ReplaceAllString(paragraph, "X"), "]"), "")
	start := 0
	take := func(end int) {
		if s := strings.Join(strings.Fields(text[start:end]), " "); s != "" {
			sentences = append(sentences, sentence{place: place, text: s})
		}
		start = end
	}
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		if begins.MatchString(text[at[1]:]) && !abbreviated.MatchString(text[:at[1]]) {
			take(at[1])
		}
	}
	take(len(text))
	return sentences
}

// page collects the sentences of a file of Markdown line by line.
type page struct {
	file      string
	sentences []sentence
	// paragraph is the lines since begin that are not split into sentences yet.
	paragraph []string
	begin     int
	fenced    bool
}

// splitMarkdown returns the sentences of a page: its paragraphs, headings, items and cells. Fenced
// code and comments are no prose.
func splitMarkdown(file, text string) []sentence {
	p := &page{file: file}
	for i, line := range strings.Split(text, "\n") {
		p.read(i+1, line)
	}
	p.end()
	return p.sentences
}

func (p *page) read(number int, line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(trimmed, "```"):
		p.end()
		p.fenced = !p.fenced
	case p.fenced:
	case trimmed == "" || strings.HasPrefix(trimmed, "<!--"):
		p.end()
	case strings.HasPrefix(trimmed, "|"):
		p.end()
		p.row(number, trimmed)
	case strings.HasPrefix(trimmed, "#"):
		p.end()
		for _, s := range splitSentences(p.place(number), strings.TrimLeft(trimmed, "# ")) {
			s.heading = true
			p.sentences = append(p.sentences, s)
		}
	default:
		if item.MatchString(line) {
			p.end()
			line = item.ReplaceAllString(line, "")
		}
		if len(p.paragraph) == 0 {
			p.begin = number
		}
		p.paragraph = append(p.paragraph, line)
	}
}

// end splits the lines of the paragraph that ends here.
func (p *page) end() {
	if len(p.paragraph) > 0 {
		p.sentences = append(p.sentences, splitSentences(p.place(p.begin), strings.Join(p.paragraph, "\n"))...)
	}
	p.paragraph = nil
}

func (p *page) row(number int, line string) {
	if tableRule.MatchString(line) {
		return
	}
	for cell := range strings.SplitSeq(cellEnd.ReplaceAllString(line, "$1\x00"), "\x00") {
		p.sentences = append(p.sentences, splitSentences(p.place(number), cell)...)
	}
}

func (p *page) place(number int) string { return fmt.Sprintf("%s:%d", p.file, number) }
