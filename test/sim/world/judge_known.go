// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"slices"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// secondCopy says that an effect is the second copy of a creation, and that a user deleted the object
// between the two. A creation names no version, and the API server admits it until its time is over, so no
// executor can prevent that. Both copies are one request: of one process, sent at one moment.
func (j *judge) secondCopy(e effect) bool {
	if e.Before != nil || e.Method != http.MethodPost || e.Sent.IsZero() {
		return false
	}
	first := slices.IndexFunc(j.effects, func(before effect) bool {
		return before.Before == nil && before.plan.UID == e.plan.UID && before.step == e.step && before.Client == e.Client && before.Sent.Equal(e.Sent)
	})
	return first >= 0 && slices.ContainsFunc(j.history, func(c apiserver.Commit) bool {
		between := c.Revision > j.effects[first].Revision && c.Revision < e.Revision
		return between && c.After == nil && c.User != Executor && c.Resource == e.Resource && c.Name == e.Name
	})
}

// overtaken says that a record tells of a decision that another executor has overtaken: the record is later than the
// last decision about its plan, and its process died before the process could learn that the plan has ended.
// The store and the API server know no common transaction. The status of the plan does not name the record,
// and no executor looks at a plan that has ended again and again.
func (j *judge) overtaken(r *evidence.Record) bool {
	p := j.plans[r.Plan.Name]
	if p == nil || string(p.UID) != r.Plan.UID || !protocol.Final(p.Status.Phase) || p.Status.Decision == nil {
		return false
	}
	return r.Chain.Sequence > p.Status.Decision.Sequence && j.w.recordings.died(evidence.Name(r.Chain.UID, r.Chain.Sequence))
}

// recordings say which processes have stored the records.
type recordings struct {
	mu  sync.Mutex
	all map[string]recording
}

// recording is a record that a store has taken.
type recording struct {
	by *schedule.Life
	// died says that the process died before the end of its world.
	died bool
}

func (r *recordings) note(name string, by *schedule.Life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]recording{}
	}
	r.all[name] = recording{by: by}
}

// bury notes which processes have died. At the end of a world all others do.
func (r *recordings) bury() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, of := range r.all {
		of.died = of.by.Context().Err() != nil
		r.all[name] = of
	}
}

func (r *recordings) died(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[name].died
}
