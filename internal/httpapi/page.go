// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Page has the parameters of each list.
type Page struct {
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many objects a page has at most."`
	Continue    string `query:"continue" maxLength:"1024" doc:"Where the page begins: the value from the Link header of the page before."`
	IfNoneMatch string `header:"If-None-Match" doc:"ETags that the caller has."`
	url         url.URL
}

// Resolve keeps the address, which the link to the next page has.
func (p *Page) Resolve(ctx huma.Context) []error {
	p.url = ctx.URL()
	return nil
}

// place is where an object stands in each list. It never changes, so a page repeats no object and
// leaves none out while others come and go.
type place struct{ namespace, name string }

func placeOf(o client.Object) place { return place{o.GetNamespace(), o.GetName()} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.namespace, q.namespace), cmp.Compare(p.name, q.name))
}

func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.namespace + "/" + p.name))
}

// after reads the place that a page begins behind; false for the first page.
func (p *Page) after() (place, bool, error) {
	if p.Continue == "" {
		return place{}, false, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Continue)
	namespace, name, found := strings.Cut(string(raw), "/")
	if err != nil || !found || name == "" {
		return place{}, false, wire.NewProblem(wire.BadRequest, "", wire.FieldError{Location: "query.continue", Message: "it is no value from a Link header"})
	}
	return place{namespace, name}, true, nil
}

// cut returns the items of the page in the order of their places, and the cursor of the next one; empty on the last.
func cut[T any](p *Page, items []T, at func(T) place) ([]T, string, error) {
	slices.SortFunc(items, func(x, y T) int { return at(x).compare(at(y)) })
	after, given, err := p.after()
	if err != nil {
		return nil, "", err
	}
	if given {
		items = slices.DeleteFunc(items, func(item T) bool { return at(item).compare(after) <= 0 })
	}
	if len(items) <= p.Limit {
		return items, "", nil
	}
	return items[:p.Limit], at(items[p.Limit-1]).cursor(), nil
}

// next returns the Link header of a page.
func (p *Page) next(cursor string) string {
	if cursor == "" {
		return ""
	}
	query := p.url.Query()
	query.Set("continue", cursor)
	return fmt.Sprintf(`<%s>; rel="next"`, (&url.URL{Path: p.url.Path, RawQuery: query.Encode()}).String())
}

// tagOf returns the strong ETag of a representation.
func tagOf(body any) (string, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("encoding an answer: %w", err)
	}
	return strconv.Quote(fmt.Sprintf("%x", sha256.Sum256(raw))), nil
}

// matches tells whether a list of ETags has one, or has any by "*".
func matches(list, tag string) bool {
	for candidate := range strings.SplitSeq(list, ",") {
		if candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/"); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
