// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzDecodeSettings: whatever is written into argocd-cm, decoding ends, gives
// the same twice, and what it understands can be judged.
func FuzzDecodeSettings(f *testing.F) {
	f.Add("resource.customizations.ignoreDifferences.all", "jsonPointers: [/data]")
	f.Add("resource.customizations.ignoreDifferences.admissionregistration.k8s.io_MutatingWebhookConfiguration", "jqPathExpressions:\n- '.webhooks[]?.clientConfig.caBundle'\n")
	f.Add("resource.customizations.ignoreDifferences.Secret", "jsonPointers: [/data\n")
	f.Add("resource.customizations", "'*/*':\n  ignoreDifferences: |\n    jsonPointers: [/webhooks]\n")
	f.Add("resource.customizations", "a: &a [*a]")
	f.Fuzz(func(t *testing.T, key, value string) {
		data := map[string]string{key: value}
		rules, err := DecodeSettings(data)
		again, errAgain := DecodeSettings(data)
		if (err == nil) != (errAgain == nil) || len(rules) != len(again) {
			t.Fatalf("%v, %v and then %v, %v", rules, err, again, errAgain)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "key "+key) {
				t.Errorf("the error does not name the key: %v", err)
			}
			return
		}
		judgeAll(t, func(o *Object) (Verdict, error) { return JudgeArgoCD(rules, o) })
	})
}

// judgeAll asks that a verdict names nothing but what is there to be covered.
func judgeAll(t *testing.T, judge func(*Object) (Verdict, error)) {
	t.Helper()
	for _, o := range objects() {
		verdict, err := judge(&o)
		if err != nil {
			t.Fatal(err)
		}
		for _, pointer := range verdict.Missing {
			if pointer != o.Parent && !slices.Contains(o.Fields, pointer) {
				t.Errorf("%s of %s was never there", pointer, o.ID())
			}
		}
	}
}

func FuzzDecodeApplication(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":{"destination":{"name":"in-cluster"},"ignoreDifferences":[{"group":"*","kind":"*","jqPathExpressions":["..|.x?"]}]}}`))
	f.Add([]byte(`{"spec":{"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]}},"status":{"resources":[{"kind":"K"}]}}`))
	f.Add([]byte(`{"spec":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		application, err := DecodeApplication(raw)
		if err != nil {
			if json.Valid(raw) && strings.Contains(err.Error(), "unexpected end") {
				t.Errorf("%v of valid JSON", err)
			}
			return
		}
		judgeAll(t, func(o *Object) (Verdict, error) { return JudgeArgoCD(application.Rules, o) })
	})
}

func FuzzDecodeFlux(f *testing.F) {
	f.Add([]byte(`{"spec":{"driftDetection":{"mode":"enabled","ignore":[{"paths":["/spec",""],"target":{"kind":"Lease","labelSelector":"a in (b)"}}]}}}`))
	f.Add([]byte(`{"spec":{"ignore":[{"paths":["/data/0"],"target":{"name":"("}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []FluxKind{HelmRelease, Kustomization} {
			object, err := DecodeFlux(kind, raw)
			if err != nil {
				continue
			}
			judgeAll(t, object.Judge)
		}
	})
}
