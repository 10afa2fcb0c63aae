// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// FluxKind is the kind of an object of Flux that applies others.
type FluxKind string

// The kinds.
const (
	HelmRelease   FluxKind = "HelmRelease"
	Kustomization FluxKind = "Kustomization"
)

// FluxTarget selects objects. The first five are regular expressions, anchored
// at both ends; empty is any. The selectors are in the text form of label
// selectors.
type FluxTarget struct {
	Group, Version, Kind, Name, Namespace string
	LabelSelector, AnnotationSelector     string
}

// FluxRule is one entry of the ignore rules of either kind.
type FluxRule struct {
	// Paths are JSON pointers.
	Paths []string
	// Target is nil for all objects.
	Target *FluxTarget
}

// FluxObject is what matters of a HelmRelease or a Kustomization.
type FluxObject struct {
	Kind            FluxKind
	Namespace, Name string
	// Mode of the drift detection of a HelmRelease: enabled, warn or disabled.
	// Empty for a Kustomization, which always corrects.
	Mode  string
	Rules []FluxRule
}

// DecodeFlux reads an object as the API server stores it, in JSON. Fields that
// it does not know are passed over.
func DecodeFlux(kind FluxKind, raw []byte) (FluxObject, error) {
	var stored struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct {
			DriftDetection struct {
				Mode   string
				Ignore []FluxRule
			}
			Ignore []FluxRule
		}
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return FluxObject{}, fmt.Errorf("decoding a %s: %w", kind, err)
	}
	object := FluxObject{Kind: kind, Namespace: stored.Metadata.Namespace, Name: stored.Metadata.Name, Rules: stored.Spec.Ignore}
	if kind == HelmRelease {
		object.Mode, object.Rules = stored.Spec.DriftDetection.Mode, stored.Spec.DriftDetection.Ignore
		if object.Mode == "" {
			object.Mode = "disabled"
		}
	}
	return object, nil
}

// ID is Kind/namespace/name.
func (f *FluxObject) ID() string { return string(f.Kind) + "/" + f.Namespace + "/" + f.Name }

// Detects tells whether drift is looked for at all.
func (f *FluxObject) Detects() bool { return f.Kind != HelmRelease || f.Mode != "disabled" }

// exempting are labels or annotations by which Flux leaves a whole object alone
// once it is there.
var exempting = map[FluxKind][][2]string{
	HelmRelease: {{"helm.toolkit.fluxcd.io/driftDetection", "disabled"}},
	Kustomization: {
		{"kustomize.toolkit.fluxcd.io/reconcile", "disabled"},
		{"kustomize.toolkit.fluxcd.io/ssa", "Ignore"}, {"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"},
	},
}

func (f *FluxObject) exempts(o *Object) bool {
	if o.Metadata == nil {
		return false
	}
	for _, mark := range exempting[f.Kind] {
		if strings.EqualFold(o.Metadata.Labels[mark[0]], mark[1]) || strings.EqualFold(o.Metadata.Annotations[mark[0]], mark[1]) {
			return true
		}
	}
	return false
}

// Judge tells which fields of an object no rule covers.
func (f *FluxObject) Judge(o *Object) (Verdict, error) {
	document, err := o.sample()
	if err != nil {
		return Verdict{}, err
	}
	if f.exempts(o) {
		return Verdict{}, nil
	}
	for _, rule := range f.Rules {
		selector, err := compileTarget(rule.Target)
		if err != nil || !selector.matches(o) { // what is broken selects nothing
			continue
		}
		for _, path := range rule.Paths {
			if path == "" && f.Kind == HelmRelease { // the whole object
				return Verdict{}, nil
			}
			document = remove(document, path)
		}
	}
	verdict := Verdict{Missing: o.left(document)}
	if !verdict.Covered() && o.Metadata == nil { // a mark or a selector may cover it
		verdict.Unjudged = "labels and annotations of " + o.ID() + ": " + o.Unread
	}
	return verdict, nil
}

// Broken lists the targets that Flux cannot read. One of them is enough for it
// to fail.
func (f *FluxObject) Broken() []string {
	var out []string
	for i, rule := range f.Rules {
		if _, err := compileTarget(rule.Target); err != nil {
			out = append(out, fmt.Sprintf("target of ignore rule %d: %v", i+1, err))
		}
	}
	return out
}

// target is a FluxTarget that was read; what is nil matches everything.
type target struct {
	group, version, kind, name, namespace *regexp.Regexp
	labels, annotations                   labels.Selector
}

func compileTarget(t *FluxTarget) (target, error) {
	var out target
	if t == nil {
		return out, nil
	}
	for _, part := range []struct {
		field, expression string
		into              **regexp.Regexp
	}{
		{"group", t.Group, &out.group}, {"version", t.Version, &out.version}, {"kind", t.Kind, &out.kind},
		{"name", t.Name, &out.name}, {"namespace", t.Namespace, &out.namespace},
	} {
		if part.expression == "" {
			continue
		}
		re, err := regexp.Compile("^(?:" + part.expression + ")$")
		if err != nil {
			return target{}, fmt.Errorf("%s: %w", part.field, err)
		}
		*part.into = re
	}
	for _, part := range []struct {
		field, expression string
		into              *labels.Selector
	}{{"labelSelector", t.LabelSelector, &out.labels}, {"annotationSelector", t.AnnotationSelector, &out.annotations}} {
		if part.expression == "" {
			continue
		}
		selector, err := labels.Parse(part.expression)
		if err != nil {
			return target{}, fmt.Errorf("%s: %w", part.field, err)
		}
		*part.into = selector
	}
	return out, nil
}

func (t *target) matches(o *Object) bool {
	for _, part := range []struct {
		re   *regexp.Regexp
		text string
	}{{t.group, o.Group}, {t.version, o.Version}, {t.kind, o.Kind}, {t.name, o.Name}, {t.namespace, o.Namespace}} {
		if part.re != nil && !part.re.MatchString(part.text) {
			return false
		}
	}
	if t.labels == nil && t.annotations == nil {
		return true
	}
	m := o.Metadata
	return m != nil && (t.labels == nil || t.labels.Matches(labels.Set(m.Labels))) &&
		(t.annotations == nil || t.annotations.Matches(labels.Set(m.Annotations)))
}
