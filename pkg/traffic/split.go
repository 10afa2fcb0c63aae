// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Split divides the requests of one Service: all that a [Router] has to know.
type Split struct {
	// Namespace and Name are those of the release. The Service is in the same namespace.
	Namespace, Name string
	// Created decides which of two splits for one Service comes first.
	Created time.Time
	// Service is its name.
	Service string
	// Variations say which pods are whose.
	Variations []Variation
	Routing
	// Sequence grows with each decision about it.
	Sequence uint64
}

// Variation says which pods are a variation's: those that a selector selects, or
// those of a workload in the namespace of the split.
type Variation struct {
	Name     string
	Selector *metav1.LabelSelector
	Workload *Workload
	// ServedBy is another variation whose pods answer the requests of this one; empty as a rule. So two
	// groups of visitors can be compared while both have the same version.
	ServedBy string
}

// Workload is what pods belong to.
type Workload struct{ Namespace, Kind, Name string }

// Routing is what decides where a request goes: Override and Match come before Shares.
type Routing struct {
	// Shares are those in force now.
	Shares Shares
	Key    Key
	// Salt makes the visitors of one split independent of those of another.
	Salt string
	// Override is a header whose value names a variation, for tests; "" for none.
	Override string
	// Match sends certain values of a header to certain variations.
	Match Match
}

// Match sends a request whose header has a certain value to a variation.
type Match struct {
	Header string
	// Values maps a value to a variation.
	Values map[string]string
}

// KeyKind is what a visitor is known by.
type KeyKind int

// The kinds.
const (
	// PerRequest knows nobody: each request is drawn by itself.
	PerRequest KeyKind = iota
	// ByHeader is a header that clients send. A request without it is drawn by itself.
	ByHeader
	// ByCookie is a cookie of the application. A request without it is drawn by itself.
	ByCookie
	// ByVisitor is a cookie that the proxy gives to those who have none.
	ByVisitor
)

func (k KeyKind) String() string {
	return [...]string{"PerRequest", "ByHeader", "ByCookie", "ByVisitor"}[k]
}

// Key is what a visitor keeps a variation by.
type Key struct {
	Kind KeyKind
	// Name of the header or the cookie.
	Name string
	// Domain and Secure are attributes of the cookie that the proxy gives; "" is none.
	Domain string
	Secure bool
}

// Validate lists what is wrong with a split whichever router carries it out; nil when nothing is.
// A router has limits of its own, such as names that it can write into its configuration.
func (s Split) Validate() error {
	if err := s.Shares.Validate(); err != nil {
		return err
	}
	var unnamed error
	if s.Service == "" {
		unnamed = errors.New("a split names a Service, and this one does not")
	}
	return errors.Join(unnamed, s.ValidateVariations(), s.ValidateMatch())
}

// ValidateVariations returns the first mistake in which pods are whose.
func (s Split) ValidateVariations() error {
	declared := map[string]int{}
	for _, v := range s.Variations {
		declared[v.Name]++
		switch {
		case !s.Shares.Has(v.Name):
			return fmt.Errorf("variation %.40q has no weight: give it a weight, which may be 0", v.Name)
		case len(validation.IsDNS1123Label(v.Name)) > 0:
			return fmt.Errorf("variation %.40q is not named with small letters, digits and hyphens", v.Name)
		case (v.Selector == nil) == (v.Workload == nil):
			return fmt.Errorf("variation %s needs a selector or a workload, and not both", v.Name)
		case v.ServedBy != "" && (v.ServedBy == v.Name || !s.Shares.Has(v.ServedBy)):
			return fmt.Errorf("variation %s is served by %.40q, which is no other variation", v.Name, v.ServedBy)
		}
		if v.Selector == nil {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(v.Selector); err != nil || selector.Empty() {
			return fmt.Errorf("variation %s needs a valid selector that does not select all pods", v.Name)
		}
	}
	for _, share := range s.Shares {
		if n := declared[share.Variation]; n != 1 {
			return fmt.Errorf("%s has a weight and is declared %d times: declare it once", share.Variation, n)
		}
	}
	return nil
}

// ValidateMatch returns the first value of a header, by its text, that goes to no variation.
func (s Split) ValidateMatch() error {
	for _, value := range slices.Sorted(maps.Keys(s.Match.Values)) {
		if variation := s.Match.Values[value]; !s.Shares.Has(variation) {
			return fmt.Errorf("header %s: %.40q goes to %.40q, which is no variation", s.Match.Header, value, variation)
		}
	}
	return nil
}
