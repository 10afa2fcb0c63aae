// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// attribute returns the value of an attribute, and whether the element has it.
func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// elements returns the elements below a node with one of the names; with none, all elements.
func elements(n *html.Node, names ...string) []*html.Node {
	var found []*html.Node
	for below := range n.Descendants() {
		if below.Type == html.ElementNode && (len(names) == 0 || slices.Contains(names, below.Data)) {
			found = append(found, below)
		}
	}
	return found
}

// checkStructure demands what a browser and a screen reader need of each page, and what the content
// security policy refuses.
func checkStructure(t *testing.T, name, body string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, n := range elements(root) {
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s: <%s> has %s, which the content security policy refuses", name, n.Data, a.Key)
			}
		}
		if id, has := attribute(n, "id"); has {
			if ids[id] {
				t.Errorf("%s: two elements have the id %q", name, id)
			}
			ids[id] = true
		}
		if slices.Contains([]string{"style", "iframe", "object", "embed", "base", "img", "foreignObject", "use", "image", "animate"}, n.Data) {
			t.Errorf("%s: the page has <%s>", name, n.Data)
		}
	}
	scripts := elements(root, "script")
	if source, _ := attribute(scripts[0], "src"); len(scripts) != 1 || source != "/assets/live.js" || scripts[0].FirstChild != nil {
		t.Errorf("%s: the page has other scripts than its own", name)
	}
	for _, kind := range []string{"h1", "main", "nav", "title"} {
		if n := len(elements(root, kind)); n != 1 {
			t.Errorf("%s: the page has %d <%s>", name, n, kind)
		}
	}
	for _, table := range elements(root, "table") {
		if len(elements(table, "caption")) != 1 {
			t.Errorf("%s: a table has no caption", name)
		}
		for _, cell := range elements(table, "th") {
			if _, has := attribute(cell, "scope"); !has {
				t.Errorf("%s: a header has no scope", name)
			}
		}
	}
	for _, field := range elements(root, "input", "select") {
		if kind, _ := attribute(field, "type"); kind != "hidden" && field.Parent.Data != "label" {
			t.Errorf("%s: a field has no label", name)
		}
	}
	checkForms(t, name, root, ids)
	checkCharts(t, name, root)
	for _, link := range elements(root, "a", "link") {
		checkAddress(t, name, link, ids)
	}
}

// checkCharts demands that each chart has a name, is drawn by classes alone, and has its values in a table.
func checkCharts(t *testing.T, name string, root *html.Node) {
	t.Helper()
	for _, svg := range elements(root, "svg") {
		if label, _ := attribute(svg, "aria-label"); label == "" {
			t.Errorf("%s: a chart has no name", name)
		}
		if len(elements(svg.Parent, "table")) != 1 || len(elements(svg.Parent, "figcaption")) != 1 {
			t.Errorf("%s: a chart has no table or no caption", name)
		}
		for _, n := range elements(svg) {
			for _, a := range n.Attr {
				if slices.Contains([]string{"fill", "stroke", "href"}, a.Key) {
					t.Errorf("%s: <%s> of a chart has %s", name, n.Data, a.Key)
				}
			}
		}
	}
}

// checkForms demands that each form stays at the console, and that the text that describes a part of it is there.
func checkForms(t *testing.T, name string, root *html.Node, ids map[string]bool) {
	t.Helper()
	for _, form := range elements(root, "form") {
		action, _ := attribute(form, "action")
		if to, err := url.Parse(action); err != nil || to.Host != "" || to.Scheme != "" || to.RawQuery != "" || action != "" && !strings.HasPrefix(action, "/") {
			t.Errorf("%s: a form leads to %q", name, action)
		}
		if _, has := attribute(form, "id"); !has {
			t.Errorf("%s: the form that leads to %q has no id", name, action)
		}
	}
	focused := 0
	for _, n := range elements(root) {
		if id, has := attribute(n, "aria-describedby"); has && !ids[id] {
			t.Errorf("%s: no element has the id %q, which describes another", name, id)
		}
		if _, has := attribute(n, "autofocus"); has {
			focused++
		}
	}
	if focused > 1 {
		t.Errorf("%s: %d elements want the focus", name, focused)
	}
}

// checkAddress demands that a link stays at the console.
func checkAddress(t *testing.T, name string, link *html.Node, ids map[string]bool) {
	t.Helper()
	address, _ := attribute(link, "href")
	fragment, local := strings.CutPrefix(address, "#")
	switch to, err := url.Parse(address); {
	case address == "data:,": // no icon is asked for
	case local && !ids[fragment]:
		t.Errorf("%s: no element has the id %q", name, fragment)
	case local:
	case err != nil || to.Host != "" || to.Scheme != "" || !strings.HasPrefix(to.Path, "/"):
		t.Errorf("%s: a link leads to %q", name, address)
	}
}

func TestEachPageHasItsParts(t *testing.T) {
	b := open(t, shop(t), alice())
	followed := map[string]bool{}
	for name, target := range targets {
		body := b.get(target).Body.String()
		checkStructure(t, name, body)
		root, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range elements(root, "a", "link") {
			address, _ := attribute(link, "href")
			if address, _, _ = strings.Cut(address, "#"); strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "/api/") && !followed[address] {
				followed[address] = true
				if w := b.get(address); w.Code != http.StatusOK && w.Code != http.StatusNotFound {
					t.Errorf("%s: the link to %s: %d", name, address, w.Code)
				}
			}
		}
	}
	if len(followed) < 15 {
		t.Errorf("only %d links were followed", len(followed))
	}
}
