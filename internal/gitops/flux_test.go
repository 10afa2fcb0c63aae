// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// fluxOf makes an object of Flux from the YAML of its spec.
func fluxOf(t interface{ Fatal(args ...any) }, kind FluxKind, spec string) FluxObject {
	var parsed map[string]any
	if err := yaml.UnmarshalStrict([]byte(spec), &parsed); err != nil {
		t.Fatal(err, spec)
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "flux", "name": "plumbline"}, "spec": parsed})
	if err != nil {
		t.Fatal(err)
	}
	object, err := DecodeFlux(kind, raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestFlux_Judge(t *testing.T) {
	spec := []string{"/spec"}
	cases := map[string]struct {
		ignore string // the list, for both kinds
		object *Object
		want   []string
	}{
		"no rules":                           {"[]", lease(), spec},
		"the path":                           {"[{paths: [/spec], target: {kind: Lease}}]", lease(), nil},
		"no target is every object":          {"[{paths: [/spec]}]", lease(), nil},
		"an empty target is every object":    {"[{paths: [/spec], target: {}}]", lease(), nil},
		"each field by itself":               {"[{paths: [/spec/acquireTime, /spec/holderIdentity, /spec/leaseDurationSeconds, /spec/leaseTransitions, /spec/renewTime]}]", lease(), nil},
		"all fields but one":                 {"[{paths: [/spec/acquireTime, /spec/holderIdentity, /spec/leaseDurationSeconds, /spec/leaseTransitions]}]", lease(), []string{"/spec/renewTime"}},
		"a path that leads nowhere, then it": {"[{paths: [/data, /spec]}]", lease(), nil},
		"a path without its first slash":     {"[{paths: [spec]}]", lease(), spec},
		"another kind":                       {"[{paths: [/spec], target: {kind: Deployment}}]", lease(), spec},
		"a regular expression":               {"[{paths: [/spec], target: {group: '.*k8s.io', version: 'v[0-9]', kind: 'Lease|Secret', name: 'plumbline-.*', namespace: '.*-system'}}]", lease(), nil},
		"it is anchored at its begin":        {"[{paths: [/spec], target: {name: assessor}}]", lease(), spec},
		"it is anchored at its end":          {"[{paths: [/spec], target: {kind: Le}}]", lease(), spec},
		"a glob is no regular expression":    {"[{paths: [/spec], target: {kind: '*'}}]", lease(), spec},
		"another namespace":                  {"[{paths: [/spec], target: {namespace: shop}}]", lease(), spec},
		"another group":                      {"[{paths: [/spec], target: {group: apps}}]", lease(), spec},
		"by label":                           {"[{paths: [/webhooks], target: {labelSelector: 'app in (plumbline, x)'}}]", mutating(), nil},
		"by a label that it lacks":           {"[{paths: [/webhooks], target: {labelSelector: 'other'}}]", mutating(), []string{bundlePointer}},
		"by annotation":                      {"[{paths: [/data], target: {annotationSelector: 'who=us'}}]", secret(), nil},
		"by an annotation that it lacks":     {"[{paths: [/data], target: {annotationSelector: 'who=them'}}]", secret(), []string{"/data"}},
		"a selector that is malformed":       {"[{paths: [/data], target: {labelSelector: 'a in ('}}]", secret(), []string{"/data"}},
		"a regular expression that is":       {"[{paths: [/data], target: {name: '('}}]", secret(), []string{"/data"}},
		"the first webhook":                  {"[{paths: [/webhooks/0/clientConfig/caBundle]}]", mutating(), nil},
		"the last webhook":                   {"[{paths: [/webhooks/-1/clientConfig/caBundle]}]", mutating(), nil},
		"another webhook":                    {"[{paths: [/webhooks/1/clientConfig/caBundle]}]", mutating(), []string{bundlePointer}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for kind, spec := range map[FluxKind]string{HelmRelease: "driftDetection: {mode: enabled, ignore: " + tc.ignore + "}", Kustomization: "ignore: " + tc.ignore} {
				f := fluxOf(t, kind, spec)
				got, err := f.Judge(tc.object)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(Verdict{Missing: tc.want}, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
				if malformed := strings.Contains(name, "malformed") || strings.HasSuffix(name, " is") || strings.Contains(name, "a glob"); (len(f.Broken()) > 0) != malformed {
					t.Errorf("%s: broken are %q", kind, f.Broken())
				}
			}
		})
	}
}

func TestFlux_JudgeByMarks(t *testing.T) {
	cases := map[string]struct {
		kind FluxKind
		mark Metadata
		want bool
	}{
		"drift detection is disabled by annotation":         {HelmRelease, Metadata{Annotations: map[string]string{"helm.toolkit.fluxcd.io/driftDetection": "disabled"}}, true},
		"drift detection is disabled by label":              {HelmRelease, Metadata{Labels: map[string]string{"helm.toolkit.fluxcd.io/driftDetection": "Disabled"}}, true},
		"the mark has another value":                        {HelmRelease, Metadata{Labels: map[string]string{"helm.toolkit.fluxcd.io/driftDetection": "enabled"}}, false},
		"the mark of the other kind":                        {Kustomization, Metadata{Annotations: map[string]string{"helm.toolkit.fluxcd.io/driftDetection": "disabled"}}, false},
		"it is applied only if it is not there":             {Kustomization, Metadata{Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}}, true},
		"it is not applied":                                 {Kustomization, Metadata{Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "ignore"}}, true},
		"it is not reconciled":                              {Kustomization, Metadata{Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}, true},
		"it is merged, which is no rule on what is ignored": {Kustomization, Metadata{Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "Merge"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := secret()
			o.Metadata = &tc.mark
			f := FluxObject{Kind: tc.kind}
			if got, err := f.Judge(o); err != nil || got.Covered() != tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
			o.Metadata, o.Unread = nil, "your user may not get secrets"
			got, err := f.Judge(o)
			if err != nil || got.Covered() || !strings.Contains(got.Unjudged, o.Unread) {
				t.Errorf("with marks that cannot be read: %+v, %v", got, err)
			}
		})
	}
}

func TestFlux_AnEmptyPathIsTheWholeObjectOfARelease(t *testing.T) {
	rules := []FluxRule{{Paths: []string{""}}}
	for kind, covered := range map[FluxKind]bool{HelmRelease: true, Kustomization: false} {
		f := FluxObject{Kind: kind, Rules: rules}
		if got, err := f.Judge(secret()); err != nil || got.Covered() != covered {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

func TestDecodeFlux(t *testing.T) {
	const both = `{"metadata":{"namespace":"flux","name":"p"},"spec":{"ignore":[{"paths":["/k"]}],
		"driftDetection":{"mode":"warn","ignore":[{"paths":["/h"],"target":{"kind":"Lease","labelSelector":"a"}}]}}}`
	cases := map[string]struct {
		kind FluxKind
		raw  string
		want FluxObject
	}{
		"a release": {HelmRelease, both, FluxObject{Kind: HelmRelease, Namespace: "flux", Name: "p", Mode: "warn",
			Rules: []FluxRule{{Paths: []string{"/h"}, Target: &FluxTarget{Kind: "Lease", LabelSelector: "a"}}}}},
		"a release is not looked after unless it says so": {HelmRelease, `{"spec":{}}`, FluxObject{Kind: HelmRelease, Mode: "disabled"}},
		"a kustomization": {Kustomization, both, FluxObject{Kind: Kustomization, Namespace: "flux", Name: "p", Rules: []FluxRule{{Paths: []string{"/k"}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeFlux(tc.kind, []byte(tc.raw))
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if got.Detects() != (tc.want.Mode != "disabled") {
				t.Errorf("Detects is %v", got.Detects())
			}
		})
	}
	if _, err := DecodeFlux(HelmRelease, []byte(`{"spec":[]}`)); err == nil {
		t.Error("a list was decoded")
	}
}
