// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// scalarFields are fields of the test Deployment, by the format of their values.
var scalarFields = map[string]string{
	"/spec/template/spec/containers/[name=app]/image":                `"registry.example/shop/web:%d"`,
	"/spec/template/spec/containers/[name=app]/resources/limits/cpu": `"%d"`,
	"/spec/replicas":                     "%d",
	"/spec/template/metadata/labels/app": `"%d"`,
}

// forgedWorld is a world whose webhook stamps each write and whose port takes forged
// reviews, beside a naive twin: the last user who wrote each path.
type forgedWorld struct {
	*world
	authors map[string]string
}

// writeForged has a user move one field to a new value. Forged records of that write are
// there before the true one.
func (w *forgedWorld) writeForged(t *rapid.T, value int) {
	path := rapid.SampledFrom(sortedKeys(scalarFields)).Draw(t, "path")
	wr := write{
		user:   user(rapid.SampledFrom([]string{"alice", "alice", "mallory", "ci"}).Draw(t, "user")),
		record: rapid.SampledFrom([]string{"yes", "late"}).Draw(t, "record"), manager: "pipeline", applies: true,
		changes: parseChanges(w.t, w.live.Body, w.gvk, path+" = "+fmt.Sprintf(scalarFields[path], value)),
	}
	w.update(wr)
	w.authors[path] = wr.user
	for _, forger := range rapid.SliceOfN(rapid.SampledFrom([]string{"ci", "hpa", "executor", "bob"}), 0, 2).Draw(t, "forged") {
		r := w.last
		r.User = user(forger)
		w.records = slices.Insert(w.records, 0, r)
	}
	w.observe(false, false)
}

// checkNames compares the findings and masks of foreign writes with the twin. All true
// records have arrived if complete is set.
func (w *forgedWorld) checkNames(t *rapid.T, complete bool) {
	for path, author := range w.authors {
		if author == user("ci") {
			continue
		}
		i := slices.IndexFunc(w.state.Findings, func(f v1alpha1.Finding) bool { return f.Path == path })
		if i < 0 {
			t.Fatalf("%s wrote %s, which is no finding; masks %v", author, path, w.state.Masks)
		}
		actor := w.state.Findings[i].Actor
		if isNamed(actor) && actor.User != author || complete && !isNamed(actor) {
			t.Fatalf("%s wrote %s, and the finding names %s", author, path, showActor(actor))
		}
	}
}

// Where the webhook stamps the writer, a forged review that came before the true one put
// the blame for a tenant's write on CI or on another tenant, or excused the write.
func TestAForgedRecordThatComesFirstPutsNoOtherNameOnAStampedForeignWrite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &forgedWorld{propertyWorld(rt, t), map[string]string{}}
		w.config.Stamp, w.size = StampWebhook, nil
		remembers := true
		for i := range rapid.IntRange(1, 12).Draw(rt, "writes") {
			w.writeForged(rt, 10+i)
			w.checkNames(rt, false)
			switch rapid.SampledFrom([]string{"next", "next", "resync", "records", "restart"}).Draw(rt, "moment") {
			case "next":
			case "resync":
				w.observe(false, false)
			case "records":
				w.records, w.late = append(w.records, w.late...), nil
				w.observe(false, false)
			case "restart": // forgets what it waits for
				remembers = false
				w.restart()
				w.observe(true, false)
			}
			w.checkNames(rt, false)
		}
		w.records, w.late = append(w.records, w.late...), nil
		w.observe(false, false)
		w.checkNames(rt, remembers)
	})
}

func TestTheStampOfTheWebhookOutweighsOnlyRecordsThatAnybodyMayHaveSent(t *testing.T) {
	ci, alice := Identity{User: user("ci")}, Identity{User: "alice"}
	hpa, bob := Identity{User: user("hpa")}, Identity{User: "bob"}
	tests := map[string]struct {
		source StampSource
		stamp  Identity
		record WriteRecord
		path   string
		want   bool
	}{
		"a record of a more trusted user":                       {StampWebhook, alice, WriteRecord{Identity: ci}, "/spec/paused", true},
		"a record of a user who is expected there":              {StampWebhook, alice, WriteRecord{Identity: hpa}, "/spec/replicas", true},
		"a record of a user who is no more trusted":             {StampWebhook, alice, WriteRecord{Identity: bob}, "/spec/paused", true},
		"a record of a less trusted user":                       {StampWebhook, ci, WriteRecord{Identity: bob}, "/spec/paused", false},
		"a record of a user who is less trusted there":          {StampWebhook, hpa, WriteRecord{Identity: bob}, "/spec/replicas", false},
		"a record of the user of the stamp":                     {StampWebhook, alice, WriteRecord{Identity: alice}, "/spec/paused", false},
		"no stamp":                                              {StampWebhook, Identity{}, WriteRecord{Identity: ci}, "/spec/paused", false},
		"a record with the API server's certificate":            {StampWebhook, alice, WriteRecord{Identity: ci, Authenticated: true}, "/spec/paused", false},
		"a write through a subresource, which no stamp follows": {StampWebhook, alice, WriteRecord{Identity: hpa, Subresource: "scale"}, "/spec/replicas", false},
		"the stamp of a policy, which contradicts by itself":    {StampInProcess, alice, WriteRecord{Identity: ci}, "/spec/paused", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rules := rulesOf(t, func(s *v1alpha1.GuardSpec) { *s = testGuardSpec(); s.Resources = deployments })
			s := &step{in: Input{Rules: rules, Config: Config{Stamp: tc.source}}}
			if got := s.outweighs(tc.stamp, &tc.record, []canon.Path{mustPath(t, tc.path)}); got != tc.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// Writes that a record excuses do not wait for another record, and take no room.
func TestTheScalesOfAnAutoscalerDisplaceNoWriteThatWaitsForItsRecord(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.policy.remove()
	w.update(write{user: "alice", record: "late", changes: parseChanges(t, w.live.Body, w.gvk, "/spec/paused = true")})
	w.observe(false, false)
	for i := range maxPending + 1 {
		w.update(write{user: user("hpa"), sub: "scale", changes: parseChanges(t, w.live.Body, w.gvk, fmt.Sprintf("/spec/replicas = %d", 4+i))})
		w.observe(false, false)
	}
	w.records, w.late = append(w.records, w.late...), nil
	w.observe(false, false)
	if len(w.state.Findings) != 1 || w.state.Findings[0].Actor.User != "alice" {
		t.Errorf("the findings are %v", w.state.Findings)
	}
}
