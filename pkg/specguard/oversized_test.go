// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	paddedPath  = "/spec/template/spec/containers/[name=app]/command"
	padded      = paddedPath + ` = ["PAD"]`
	unpadded    = paddedPath + " gone"
	evilImage   = `/spec/template/spec/containers/[name=app]/image = "registry.example/evil:1"`
	firstImage  = `/spec/template/spec/containers/[name=app]/image = "registry.example/shop/web:1"`
	secondImage = `/spec/template/spec/containers/[name=app]/image = "registry.example/shop/web:2"`
)

// tooLargeWhenPadded has no revision hold a body with padding.
func tooLargeWhenPadded(body []byte) int {
	if bytes.Contains(body, []byte("PAD")) {
		return v1alpha1.MaxBodyBytes + 1
	}
	return len(body)
}

func paddedDeployment() string {
	return strings.Replace(testDeployment, `"args":`, `"command":["PAD"],"args":`, 1)
}

// grown has a Deployment that ci made too large.
func grown(t testing.TB) *world {
	w := shopWorld(t)
	w.size = tooLargeWhenPadded
	w.by("ci", padded)
	return w
}

// importedPadded has a Deployment that was too large before there was a guard.
func importedPadded(t testing.TB) *world {
	w := newWorld(t)
	w.size = tooLargeWhenPadded
	w.create(write{user: "mallory"}, paddedDeployment())
	w.now = w.now.Add(time.Hour)
	w.guard("shop", testGuardSpec(), w.now)
	w.now = w.now.Add(time.Minute)
	w.observe(true, false)
	return w
}

func (w *world) standing() string {
	text := string(w.state.Drift)
	if w.state.Oversized != nil {
		text += " too large"
	}
	if a := w.state.Authorized; a != nil {
		text += fmt.Sprintf(", revision %d", a.Number)
	}
	if n := w.state.FindingsTotal; n > 0 {
		text += fmt.Sprintf(", %d findings", n)
	}
	return text
}

func (w *world) acceptLive() {
	w.t.Helper()
	p := Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, SeenAt: w.now}
	w.step(p, &v1alpha1.AcceptRequest{Hash: w.state.Observed.Hash, RequestedBy: "bob"})
}

// TestABodyThatCannotBeKeptIsUnknown is H9 of the guard's review.
func TestABodyThatCannotBeKeptIsUnknown(t *testing.T) {
	tests := map[string]struct {
		make func(testing.TB) *world
		then func(*world)
		want string
	}{
		"it was too large before its guard":          {make: importedPadded, want: "Unknown too large"},
		"a trusted writer makes it grow":             {make: grown, want: "Unknown too large, revision 1"},
		"a trusted writer creates it":                {make: created, want: "Unknown too large"},
		"nothing happens but a restart":              {make: grown, then: restarted, want: "Unknown too large, revision 1"},
		"the trusted writer makes it smaller":        {make: grown, then: by("ci", unpadded), want: "InSync, revision 2"},
		"and with another image at once":             {make: grown, then: by("ci", unpadded+"\n"+secondImage), want: "InSync, revision 2"},
		"after another change":                       {make: grown, then: by("ci", secondImage, "ci", unpadded), want: "InSync, revision 2"},
		"after a restart":                            {make: grown, then: all(restarted, by("ci", unpadded)), want: "InSync, revision 2"},
		"after the autoscaler moved it":              {make: grown, then: by("hpa", "/spec/replicas = 7", "ci", unpadded), want: "InSync, revision 2"},
		"after an ignored path was added":            {make: grown, then: all(ignoring("/spec/paused"), by("ci", unpadded)), want: "InSync, revision 2"},
		"an imported one gets smaller":               {make: importedPadded, then: by("ci", unpadded), want: "InSync, revision 1"},
		"an imported one after the autoscaler":       {make: importedPadded, then: by("hpa", "/spec/replicas = 7", "ci", unpadded), want: "InSync, revision 1"},
		"a created one gets smaller":                 {make: created, then: by("ci", unpadded), want: "InSync, revision 1"},
		"a stranger changes it":                      {make: grown, then: by("mallory", evilImage), want: "Unknown too large, revision 1, 1 findings"},
		"a stranger changes an imported one":         {make: importedPadded, then: by("mallory", evilImage), want: "Unknown too large, 1 findings"},
		"a stranger changes it and the padding goes": {make: grown, then: by("mallory", evilImage, "ci", unpadded), want: "Unknown too large, revision 1, 1 findings"},
		"a stranger makes an imported one smaller":   {make: importedPadded, then: by("mallory", unpadded+"\n"+evilImage), want: "Unknown too large, 2 findings"},
		"and ci writes after that":                   {make: importedPadded, then: by("mallory", unpadded+"\n"+evilImage, "ci", `/spec/paused = true`), want: "Unknown too large, 2 findings"},
		"a stranger puts the old version back":       {make: grown, then: by("mallory", unpadded), want: "Unknown too large, revision 1, 1 findings"},
		"what a stranger changed is put back":        {make: grown, then: by("mallory", evilImage, "mallory", firstImage), want: "Unknown too large, revision 1"},
		"and then made smaller":                      {make: grown, then: by("mallory", evilImage, "mallory", firstImage, "ci", unpadded), want: "InSync, revision 2"},
		"a person accepts what a stranger left":      {make: importedPadded, then: all(by("mallory", unpadded+"\n"+evilImage, "mallory", firstImage), (*world).acceptLive), want: "InSync, revision 1"},
		"a person accepts what is still too large":   {make: grown, then: all(by("mallory", evilImage), (*world).acceptLive), want: "Unknown too large, revision 1"},
		"what was accepted is made smaller":          {make: grown, then: all(by("mallory", evilImage, "mallory", secondImage), (*world).acceptLive, by("ci", unpadded)), want: "InSync, revision 2"},
		"a stranger deletes it":                      {make: grown, then: removed("mallory"), want: "Missing too large, revision 1, 1 findings"},
		"a stranger deletes an imported one":         {make: importedPadded, then: removed("mallory"), want: "Missing too large, 1 findings"},
		"the trusted writer makes it anew":           {make: importedPadded, then: all(removed("mallory"), recreated("ci", testDeployment)), want: "InSync, revision 1"},
		"a stranger makes it anew, and small":        {make: importedPadded, then: all(removed("mallory"), recreated("mallory", testDeployment)), want: "Unknown too large, 1 findings"},
		"a stranger makes it anew as it was":         {make: importedPadded, then: all(removed("mallory"), recreated("mallory", paddedDeployment())), want: "Unknown too large"},
		"the trusted writer deletes it":              {make: grown, then: removed("ci"), want: "Retired, revision 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := tc.make(t)
			if tc.then != nil {
				tc.then(w)
			}
			if got := w.standing(); got != tc.want {
				t.Errorf("it is %s, want %s\n%s", got, tc.want, w.report())
			}
			for _, e := range w.effects {
				if stored, is := e.(AuthorizeRevision); is && bytes.Contains(stored.Body, []byte("PAD")) {
					t.Errorf("revision %d is stored, and is too large", stored.Number)
				}
			}
		})
	}
}

func TestABodyThatCannotBeKeptIsToldOnce(t *testing.T) {
	w := grown(t)
	w.observe(true, false)
	restarted(w)
	told := 0
	for _, e := range w.effects {
		if event, is := e.(Event); is && event.Reason == ReasonBodyTooLarge {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d events, want 1\n%s", told, w.report())
	}
}

func created(t testing.TB) *world {
	w := newWorld(t)
	w.size = tooLargeWhenPadded
	w.guard("shop", testGuardSpec(), w.now)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, paddedDeployment())
	w.observe(false, false)
	return w
}

// by has users write one after the other.
func by(writes ...string) func(*world) {
	return func(w *world) {
		for pair := range slices.Chunk(writes, 2) {
			w.by(pair[0], pair[1])
		}
	}
}

func all(steps ...func(*world)) func(*world) {
	return func(w *world) {
		for _, step := range steps {
			step(w)
		}
	}
}

func restarted(w *world) {
	w.restart()
	w.observe(true, false)
}

func ignoring(path string) func(*world) {
	return func(w *world) {
		spec := testGuardSpec()
		spec.Ignore = []string{path}
		w.guard("shop", spec, testNow)
		w.observe(true, false)
	}
}

func removed(who string) func(*world) {
	return func(w *world) {
		w.remove(write{user: user(who)})
		w.observe(false, false)
	}
}

func recreated(who, body string) func(*world) {
	return func(w *world) {
		w.create(write{user: user(who)}, body)
		w.observe(false, false)
	}
}
