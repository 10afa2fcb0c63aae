// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// calls counts the reviews by handler.
func (p *place) calls() map[string]float64 {
	p.t.Helper()
	return map[string]float64{
		"mutate":   p.metric("plumbline_admission_reviews_total", `handler="mutate"`),
		"validate": p.metric("plumbline_admission_reviews_total", `handler="validate"`),
	}
}

// told returns a client of a cluster administrator, and the warnings that the user reads.
func told(t testing.TB, user string) (client.Client, *warnings) {
	t.Helper()
	heard := &warnings{}
	c := apiserver.Impersonate(config, user, roots)
	c.WarningHandler, c.WarningHandlerWithContext = heard, nil
	return clientOf(t, c), heard
}

// An update is stamped, judged and recorded by one call of the webhook; each other
// write takes the call that knows the uid, or whose answer needs no patch.
func TestAnUpdateCostsOneCallAndIsRecordedAsItIsStored(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	c, heard := told(t, mallory)
	replaced := func() error {
		d := p.live("web")
		d.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:replaced"
		d.Generation = 99 // a client may claim any
		return c.Update(t.Context(), d)
	}
	patched := func(patch client.Patch, options ...client.PatchOption) func() error {
		return func() error { return c.Patch(t.Context(), p.named("web"), patch, options...) }
	}
	applied := client.RawPatch("application/apply-patch+yaml", fmt.Appendf(nil,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":%q},"spec":{"minReadySeconds":7}}`, p.namespace))
	merge := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	updates := []struct {
		name   string
		do     func() error
		fields []string
	}{
		{"a PUT of the whole object", replaced, []string{imagePath}},
		{"a patch of the image", patched(guarded.ImagePatch("registry.example/shop:patched")), []string{imagePath}},
		{"a server-side apply", patched(applied, client.FieldOwner("m"), client.ForceOwnership), []string{"/spec/minReadySeconds"}},
		{"a change of content and annotations", patched(merge(`{"metadata":{"annotations":{"x":"y"}},"spec":{"paused":true}}`)), []string{"/spec/paused"}},
	}
	for _, u := range updates {
		before, version := p.calls(), p.live("web").ResourceVersion
		heard.forget()
		if err := u.do(); err != nil {
			t.Fatalf("%s: %v", u.name, err)
		}
		d := p.live("web")
		hash := hashOf(t, d)
		p.eventually("the record of "+u.name, func() error {
			i := slices.IndexFunc(p.records(), func(r specguard.WriteRecord) bool {
				return r.User == mallory && r.UID == string(d.UID) && r.ResourceVersionBefore == version && r.HashAfter == hash && r.Generation == d.Generation
			})
			if i < 0 {
				return fmt.Errorf("none of version %s, hash %s and generation %d in %+v", version, hash, d.Generation, p.records())
			}
			if diff := cmp.Diff(u.fields, p.records()[i].Fields); diff != "" {
				return fmt.Errorf("its fields (-want +got)\n%s", diff)
			}
			return nil
		})
		if diff := cmp.Diff(map[string]float64{"mutate": before["mutate"] + 1, "validate": before["validate"]}, p.calls()); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", u.name, diff)
		}
		if text := heard.text(); strings.Count(text, "\n") != 1 || !strings.Contains(text, u.fields[0]) {
			t.Errorf("%s: the writer was told %q", u.name, text)
		}
	}

	before := p.calls()
	p.must(c.Create(t.Context(), deployment(p.namespace, "other")))
	p.must(c.Delete(t.Context(), p.named("other")))
	if diff := cmp.Diff(map[string]float64{"mutate": before["mutate"] + 1, "validate": before["validate"] + 2}, p.calls()); diff != "" {
		t.Errorf("a creation and a deletion: calls (-want +got)\n%s", diff)
	}
	heard.forget()
	p.must(c.Patch(t.Context(), p.named("web"), merge(`{"spec":{"replicas":9}}`), client.DryRunAll))
	if text := heard.text(); strings.Count(text, "\n") != 1 {
		t.Errorf("a dry run: the writer was told %q", text)
	}
	p.recorded(mallory, specguard.OperationDelete, 1) // whatever came before is in the stream, too
	if i := slices.IndexFunc(p.records(), func(r specguard.WriteRecord) bool { return slices.Contains(r.Fields, "/spec/replicas") }); i >= 0 {
		t.Errorf("a dry run left the record %+v", p.records()[i])
	}
}

func hashOf(t testing.TB, d *appsv1.Deployment) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := canon.HashBody(raw, canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}
