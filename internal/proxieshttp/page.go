// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"html/template"
	"net/http"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

//go:embed page.css
var style string

//go:embed page.html
var layout string

// onePage has no script, and nothing from elsewhere.
var onePage = template.Must(template.New("proxies").Funcs(template.FuncMap{"stamp": stamp}).Parse(layout))

// policy lets a browser use that one style and nothing else, whatever a proxy says
// about itself.
var policy = "default-src 'none'; style-src 'sha256-" + digest(style) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// shown is what the page is made of.
type shown struct {
	Replica string
	Now     time.Time
	Style   template.CSS
	Filter  Filter
	Choices []ads.Stage
	Columns []ads.Stage
	Error   string
	// Pods are those with all resources, when one pod is asked for; else there is a List.
	Pods []Proxy
	List *List
	Next string
}

func (h *Handler) page(w http.ResponseWriter, r *http.Request, proxies Proxies) {
	f, err := parse(r.URL.Query())
	s := shown{Replica: h.replica, Now: h.now(), Style: template.CSS(style), Filter: f, Choices: Stages(), Columns: ads.Stages()} //nolint:gosec // our own
	code := http.StatusOK
	switch {
	case err != nil:
		s.Error, code = err.Error(), http.StatusBadRequest
	case f.Namespace != "" && f.Pod != "":
		list, err := h.details(r.Context(), proxies, f)
		if err != nil {
			s.Error, code = err.Error(), http.StatusNotFound
		}
		s.Pods = list.Proxies
	default:
		list := h.collect(r.Context(), proxies, f)
		s.List, s.Next = &list, next(f, list.Continue)
	}
	var body bytes.Buffer
	if err := onePage.Execute(&body, s); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // who does not listen any more needs no answer
}

// next is the address of the next page, from this one; empty on the last one.
func next(f Filter, from string) string {
	if from == "" {
		return ""
	}
	f.Continue = from
	return "?" + f.Values().Encode()
}

func stamp(at time.Time) string { return at.UTC().Format(time.DateTime + " UTC") }
