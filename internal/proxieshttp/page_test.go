// SPDX-License-Identifier: Apache-2.0

package proxieshttp_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// elements of a page, with their attributes and the text in them.
func elements(t *testing.T, page string) map[string][]string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, slices.Concat(xml.HTMLAutoClose, []string{"meta", "input"}), xml.HTMLEntity
	found, open := map[string][]string{}, []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			open = append(open, x.Name.Local)
			found[x.Name.Local] = append(found[x.Name.Local], "")
			for _, a := range x.Attr {
				key := x.Name.Local + "/" + a.Name.Local
				found[key] = append(found[key], a.Value)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				of := found[open[len(open)-1]]
				of[len(of)-1] += string(x)
			}
		}
	}
}

func TestThePageListsProxiesAndLinksToEach(t *testing.T) {
	code, body, header := get(t, served(t, shop()).URL+proxieshttp.Page)
	if code != http.StatusOK || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", code, header)
	}
	found := elements(t, body)
	if got := strings.Join(found["a/href"], " "); got != "? ?namespace=bank&pod=pay-0 ?namespace=shop&pod=front-0 ?namespace=shop&pod=slow-0 ?namespace=shop&pod=starts-0" {
		t.Errorf("it links to %s", got)
	}
	if got := strings.Join(found["span"], " "); !strings.Contains(got, "Blocked") || !strings.Contains(got, "Waiting") {
		t.Errorf("what is to be looked at: %s", got)
	}
	if got := strings.Join(found["td"], " "); strings.Count(got, "2026-03-01 12:40:00 UTC") != 4 {
		t.Errorf("until when their tokens are good: %s", got)
	}
	if len(found["tr"]) != 5 {
		t.Errorf("%d rows, want a head and four proxies", len(found["tr"]))
	}
}

func TestThePageOfAPodSaysWhatItHasAndWhy(t *testing.T) {
	_, body, _ := get(t, served(t, shop()).URL+proxieshttp.Page+"?namespace=shop&pod=front-0&stage=Refused")
	found := elements(t, body)
	row := strings.Join(found["p"], " ") + strings.Join(found["td"], "|") + " " + strings.Join(found["span"], " ") + " " + strings.Join(found["th"], " ")
	for _, want := range []string{"Route", "shop/web|80", "Refused", "no <b>such</b> match", "2.h", "2026-03-01 12:00:00 UTC", "with a token until 2026-03-01 12:40:00 UTC"} {
		if !strings.Contains(row, want) {
			t.Errorf("the page does not say %q: %s", want, row)
		}
	}
	if len(found["b"]) > 0 {
		t.Error("what Envoy says is taken for HTML")
	}
	if got := found["option/selected"]; len(got) != 1 {
		t.Errorf("the filter is forgotten: %v", got)
	}
}

func TestThePageNeedsNothingFromElsewhereAndRunsNothing(t *testing.T) {
	f := shop()
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	f.members[1].Node, f.members[1].Pod, f.members[1].resources[1].Why = hostile, hostile, hostile
	for _, query := range []string{"", "?namespace=shop&pod=" + hostile, "?stage=" + hostile, "?service=" + hostile + "&limit=1"} {
		address := served(t, f).URL + proxieshttp.Page + strings.NewReplacer(`"`, "%22", "<", "%3C", ">", "%3E", " ", "%20").Replace(query)
		_, body, header := get(t, address)
		found := elements(t, body)
		for _, name := range []string{"script", "img", "link", "iframe", "object"} {
			if len(found[name]) > 0 {
				t.Errorf("%q: there is a %s", query, name)
			}
		}
		if outside := regexp.MustCompile(`(?i)(src|href)="(https?:)?//|url\(|@import`).FindString(body); outside != "" {
			t.Errorf("%q: %s", query, outside)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
			t.Errorf("%q: a browser is told %q", query, policy)
		}
	}
}

func TestThePageGoesOnToTheNext(t *testing.T) {
	server := served(t, many(1_200))
	seen, query := 0, ""
	for pages := 1; ; pages++ {
		_, body, _ := get(t, server.URL+proxieshttp.Page+query)
		found := elements(t, body)
		seen += len(found["tr"]) - 1
		if len(found["a/rel"]) == 0 {
			if seen != 1_200 || pages != 3 {
				t.Errorf("%d proxies on %d pages", seen, pages)
			}
			return
		}
		query = found["a/href"][len(found["a/href"])-1]
	}
}

func TestThePageSaysWhatIsWrong(t *testing.T) {
	for query, want := range map[string]int{"?stage=Stuck": http.StatusBadRequest, "?namespace=shop&pod=none": http.StatusNotFound} {
		code, body, _ := get(t, served(t, shop()).URL+proxieshttp.Page+query)
		if code != want || len(elements(t, body)["p/role"]) != 1 {
			t.Errorf("%s: %d\n%s", query, code, body)
		}
	}
}
