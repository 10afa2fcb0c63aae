// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/placeholder"
	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// The bounds of queries and webhooks.
const (
	MaxQueries      = 8
	MaxWebhooks     = 8
	MaxQueryBytes   = 1024
	MaxFailureLimit = 100
	maxNameBytes    = 63
)

// Query is a gate that Prometheus answers with one number.
type Query struct {
	Name string
	// PromQL can have the placeholders of [Expand].
	PromQL string
	// Minimum and Maximum are decimals that the number may have; empty for no bound. One of them is set.
	Minimum, Maximum string
	// FailureLimit is how many numbers outside of the bounds in a row fail, from 1 to [MaxFailureLimit].
	FailureLimit int
}

// Key of the query.
func (q Query) Key() Key { return Key{KindQuery, q.Name} }

// Names are the values of placeholders.
type Names struct {
	Namespace, Service, Release string
	// Canary is the variation on its way, and Stable the active variation.
	Canary, Stable string
}

// Expand replaces $(namespace), $(service), $(release), $(canary) and $(stable) by names. The error names
// a placeholder that is unknown or not closed, or a name that is none.
func Expand(promQL string, names Names) (string, error) {
	values := []placeholder.Value{{Name: "namespace", Text: names.Namespace}, {Name: "service", Text: names.Service}, {Name: "release", Text: names.Release}, {Name: "canary", Text: names.Canary}, {Name: "stable", Text: names.Stable}}
	for i := range values {
		if !placeholder.IsName(values[i].Text) {
			values[i].Text = "" // which is refused where the query has the placeholder
		}
	}
	return placeholder.Expand(promQL, values)
}

// sampleNames expand each placeholder, so that validation finds the unknown ones.
var sampleNames = Names{"a", "a", "a", "a", "a"}

// Validate lists the faults of queries by field; nil when there is none.
func Validate(queries []Query) error {
	if len(queries) > MaxQueries {
		return fmt.Errorf("queries: %d, want at most %d", len(queries), MaxQueries)
	}
	var errs []error
	names := map[string]bool{}
	for i := range queries {
		q := &queries[i]
		if names[q.Name] {
			errs = append(errs, fmt.Errorf("queries[%d].name: another query is named %q", i, q.Name))
		}
		names[q.Name] = true
		if err := q.validate(); err != nil {
			errs = append(errs, fmt.Errorf("queries[%d].%w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (q *Query) validate() error {
	switch {
	case q.Name == "" || len(q.Name) > maxNameBytes:
		return fmt.Errorf("name: %d bytes, want 1 to %d", len(q.Name), maxNameBytes)
	case q.PromQL == "" || len(q.PromQL) > MaxQueryBytes:
		return fmt.Errorf("query: %d bytes, want 1 to %d", len(q.PromQL), MaxQueryBytes)
	case q.FailureLimit < 1 || q.FailureLimit > MaxFailureLimit:
		return fmt.Errorf("failureLimit: %d, want 1 to %d", q.FailureLimit, MaxFailureLimit)
	case q.Minimum == "" && q.Maximum == "":
		return errors.New("minimum: a query needs a minimum, a maximum, or both")
	}
	if _, err := Expand(q.PromQL, sampleNames); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	low, high, err := q.limits()
	switch {
	case err != nil:
		return err
	case low > high:
		return fmt.Errorf("minimum: %s is above the maximum %s", q.Minimum, q.Maximum)
	}
	return nil
}

// decimalForm is the form of bounds.
var decimalForm = regexp.MustCompile(`^-?[0-9]{1,15}([.][0-9]{1,9})?$`)

// limits are the bounds as numbers; infinite where there is none.
func (q *Query) limits() (low, high float64, err error) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, b := range []struct {
		field, text string
		to          *float64
	}{{"minimum", q.Minimum, &low}, {"maximum", q.Maximum, &high}} {
		if b.text == "" {
			continue
		}
		if !decimalForm.MatchString(b.text) {
			return 0, 0, fmt.Errorf("%s: %q is not a decimal number, such as 0.5", b.field, printable.Line(b.text, maxNameBytes))
		}
		if *b.to, err = strconv.ParseFloat(b.text, 64); err != nil {
			return 0, 0, fmt.Errorf("%s: reading %q: %w", b.field, b.text, err)
		}
	}
	return low, high, nil
}

// violation says in which way a number is outside of the bounds; empty if it is within.
func (q *Query) violation(value float64) (string, error) {
	low, high, err := q.limits()
	switch {
	case err != nil:
		return "", err
	case value < low:
		return "is below the minimum " + q.Minimum, nil
	case value > high:
		return "is above the maximum " + q.Maximum, nil
	}
	return "", nil
}
