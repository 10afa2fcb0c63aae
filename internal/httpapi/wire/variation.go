// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Variation is one version of a service.
type Variation struct {
	// Name is A for the stable variation, and B for the other one.
	Name string `json:"name" kind:"-" pattern:"^[A-H]$"`
	// ReleaseID and DeploymentJobID are null: a variation is a workload of the namespace.
	ReleaseID         *string                     `json:"releaseId" kind:"-" readOnly:"true"`
	TargetGroupID     *string                     `json:"targetGroupId" kind:"-" readOnly:"true"`
	TrafficPercentage *float64                    `json:"trafficPercentage,omitempty" kind:"-" readOnly:"true"`
	DeploymentJobID   *string                     `json:"deploymentJobId" kind:"-" readOnly:"true"`
	Variation         string                      `json:"variation,omitempty" kind:"Name" doc:"The name in the ABRelease; the letter in lower case if it is left out."`
	Workload          *v1alpha1.VariationWorkload `json:"workload,omitempty"`
	Selector          *v1alpha1.PodSelector       `json:"selector,omitempty"`
	Clone             *v1alpha1.VariationClone    `json:"clone,omitempty"`
	Group             *v1alpha1.VariationGroup    `json:"group,omitempty"`
	Reserved          *int32                      `json:"reserved,omitempty"`
}

func variationsOf(r *v1alpha1.ABRelease, letters letters) []Variation {
	out := make([]Variation, 0, len(r.Spec.Variations))
	for _, v := range ordered(&r.Spec) {
		shown := Variation{Name: letters[v.Name], TrafficPercentage: shareOf(r, v.Name)}
		show(&shown, &v)
		out = append(out, shown)
	}
	return out
}

// shareOf returns the percentage that proxies are told, or that the spec wants before the first look.
func shareOf(r *v1alpha1.ABRelease, name v1alpha1.VariationName) *float64 {
	if effective := r.Status.Effective; effective != nil {
		for _, v := range effective.Variations {
			if v.Name == name && v.Weight != nil {
				percent := float64(*v.Weight) / 100
				return &percent
			}
		}
	}
	if wanted, ok := r.Spec.TrafficSplit.Percentages[string(name)]; ok {
		percent := percentOf(wanted)
		return &percent
	}
	return nil
}

func (v *Variation) spec() (v1alpha1.Variation, error) {
	var out v1alpha1.Variation
	err := take(&out, v)
	if out.Name == "" {
		out.Name = variationName(v.Name)
	}
	return out, err
}

// TrafficSplit says which requests go to which variation, by letters.
type TrafficSplit struct {
	Type        Word[v1alpha1.TrafficSplitType] `json:"type"`
	Percentages map[string]float64              `json:"percentages"`
	// StickyKey is cookie:NAME or header:NAME; a bare name is a cookie, and cookie: alone the
	// visitor cookie of the proxies.
	StickyKey      string                        `json:"stickyKey,omitempty"`
	HeaderMatch    *HeaderMatch                  `json:"headerMatch,omitempty"`
	Visitors       Word[v1alpha1.VisitorPolicy]  `json:"visitors,omitempty"`
	CookieDomain   string                        `json:"cookieDomain,omitempty"`
	CookieSecure   Word[v1alpha1.CookieSecurity] `json:"cookieSecure,omitempty"`
	OverrideHeader string                        `json:"overrideHeader,omitempty"`
}

// HeaderMatch sends requests with certain values of a header to certain variations.
type HeaderMatch struct {
	Header string            `json:"header"`
	Values map[string]string `json:"values" doc:"Letters of variations by values."`
}

func trafficSplitOf(spec *v1alpha1.ABReleaseSpec, letters letters) TrafficSplit {
	split := &spec.TrafficSplit
	out := TrafficSplit{Type: Spell(split.Type), Percentages: map[string]float64{}, OverrideHeader: string(split.OverrideHeader)}
	for name, wanted := range split.Percentages {
		out.Percentages[letters[v1alpha1.VariationName(name)]] = percentOf(wanted)
	}
	if s := split.Sticky; s != nil {
		out.StickyKey = stickyKeyOf(s)
		out.Visitors, out.CookieDomain, out.CookieSecure = Spell(s.Visitors), string(s.Domain), Spell(s.Secure)
	}
	if m := split.HeaderMatch; m != nil {
		out.HeaderMatch = &HeaderMatch{Header: string(m.Header), Values: map[string]string{}}
		for value, name := range m.Values {
			out.HeaderMatch.Values[value] = letters[name]
		}
	}
	return out
}

const (
	byCookie = "cookie:"
	byHeader = "header:"
)

func stickyKeyOf(s *v1alpha1.Sticky) string {
	if s.Header != "" {
		return byHeader + string(s.Header)
	}
	return byCookie + s.Cookie
}

func (s *TrafficSplit) spec(names map[string]v1alpha1.VariationName) (v1alpha1.TrafficSplit, error) {
	var out v1alpha1.TrafficSplit
	var err error
	if out.Type, err = s.Type.Value(); err != nil {
		return out, fmt.Errorf("type: %w", err)
	}
	out.OverrideHeader = v1alpha1.HeaderName(s.OverrideHeader)
	for letter, percent := range s.Percentages {
		name, ok := names[letter]
		if !ok {
			return out, fmt.Errorf("percentages: no variation is %q", letter)
		}
		if out.Percentages == nil {
			out.Percentages = map[string]v1alpha1.Percentage{}
		}
		out.Percentages[string(name)] = percentage(percent)
	}
	if out.Sticky, err = s.sticky(); err != nil {
		return out, err
	}
	if m := s.HeaderMatch; m != nil {
		out.HeaderMatch = &v1alpha1.HeaderMatch{Header: v1alpha1.HeaderName(m.Header), Values: map[string]v1alpha1.VariationName{}}
		for value, letter := range m.Values {
			name, ok := names[letter]
			if !ok {
				return out, fmt.Errorf("headerMatch.values: no variation is %q", letter)
			}
			out.HeaderMatch.Values[value] = name
		}
	}
	return out, nil
}

func (s *TrafficSplit) sticky() (*v1alpha1.Sticky, error) {
	if s.StickyKey == "" && s.Visitors == "" && s.CookieDomain == "" && s.CookieSecure == "" {
		return nil, nil //nolint:nilnil // a split that is not sticky
	}
	out := &v1alpha1.Sticky{Domain: v1alpha1.CookieDomain(s.CookieDomain)}
	var err error
	if out.Visitors, err = s.Visitors.Value(); err != nil {
		return nil, fmt.Errorf("visitors: %w", err)
	}
	if out.Secure, err = s.CookieSecure.Value(); err != nil {
		return nil, fmt.Errorf("cookieSecure: %w", err)
	}
	if header, ok := strings.CutPrefix(s.StickyKey, byHeader); ok {
		out.Header = v1alpha1.HeaderName(header)
	} else {
		out.Cookie = strings.TrimPrefix(s.StickyKey, byCookie)
	}
	return out, nil
}
