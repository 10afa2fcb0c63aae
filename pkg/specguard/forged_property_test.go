// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
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
