// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var (
	linkedTo  = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	heading   = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
	anchorID  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	elsewhere = regexp.MustCompile(`^[a-z]+:`)
)

// page is a file of Markdown: the places that its links name, and its own anchors.
type page struct {
	links   []string
	anchors map[string]bool
}

// readPage reads the links and the anchors of a page. Neither is in fenced code.
func readPage(text string) page {
	p, fenced := page{anchors: map[string]bool{}}, false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.addAnchor(anchorOf(m[1]))
		}
		for _, m := range anchorID.FindAllStringSubmatch(line, -1) {
			p.anchors[m[1]] = true
		}
		for _, m := range linkedTo.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			p.links = append(p.links, m[1])
		}
	}
	return p
}

// addAnchor numbers a heading whose text the page has had, as GitHub does.
func (p *page) addAnchor(name string) {
	free := name
	for n := 1; p.anchors[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	p.anchors[free] = true
}

// anchorOf returns the anchor that GitHub gives a heading: in lower case, hyphens for spaces, and letters,
// digits, hyphens and underscores alone.
func anchorOf(title string) string {
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

func TestPagesAreReadAsGitHubReadsThem(t *testing.T) {
	text := "# One, two\n[a](b.md#c) and `[no](link)`\n```\n# no heading\n[no](link)\n```\n## `code` & [linked](x.md)\n" +
		"## Figures\n## Figures\n<a id=\"own\"></a>\n"
	want := page{[]string{"b.md#c", "x.md"}, map[string]bool{"one-two": true, "code--linked": true, "figures": true, "figures-1": true, "own": true}}
	if diff := cmp.Diff(want, readPage(text), cmp.AllowUnexported(page{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryLinkOfAPageLeadsToAPlace follows the links between the files of the project. One named an anchor that its
// page had not.
func TestEveryLinkOfAPageLeadsToAPlace(t *testing.T) {
	pages := map[string]page{}
	for _, name := range projectFiles(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		body, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatalf("reading a page of the project: %v", err)
		}
		pages[name] = readPage(string(body))
	}
	followed := 0
	for name, p := range pages {
		for _, link := range p.links {
			if elsewhere.MatchString(link) {
				continue
			}
			followed++
			if problem := follow(pages, name, link); problem != "" {
				t.Errorf("%s: the link %s %s", name, link, problem)
			}
		}
	}
	if followed < 1000 {
		t.Errorf("only %d links were followed", followed)
	}
}

// follow returns the fault of a link of a page; it is empty if the link leads to a file and to an anchor of it.
func follow(pages map[string]page, from, link string) (problem string) {
	path, anchor, _ := strings.Cut(link, "#")
	to := from
	if path != "" {
		to = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		return "leads to no file"
	}
	if p, is := pages[to]; is && anchor != "" && !p.anchors[anchor] {
		return "names an anchor that the page does not have"
	}
	return ""
}
