// SPDX-License-Identifier: Apache-2.0

package events

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// releaseStatuses has the status of a run, or of a stage, after each event that the published design names.
// Each other event has the status of a run that is under way.
var releaseStatuses = map[rollout.EventName]string{
	rollout.RunCreated: "created", rollout.RunPromoted: "completed", rollout.RunRolledBack: "rolled_back",
	rollout.StagePassed: "succeeded", rollout.StageHasFailed: "failed",
}

// ofRelease follows the history of a release, which keeps its newest lines. The place of an event is the
// number of its line.
func ofRelease(r *v1alpha1.ABRelease) []Entry {
	if r.Status.Rollout == nil {
		return nil
	}
	var all []Entry
	for i := range r.Status.Rollout.History {
		line := &r.Status.Rollout.History[i]
		e := wire.Event{Type: wire.EventType(line.Event), ReleaseID: string(r.UID), Status: "running", Message: line.Message}
		if !e.Type.Known() {
			continue
		}
		name := rollout.EventName(line.Event)
		if status, found := releaseStatuses[name]; found {
			e.Status = status
		}
		e.StageNumber = rollout.StageOf(name, line.Message)
		all = append(all, entryOf(&r.ObjectMeta, strconv.FormatInt(line.Number, 10), line.EventTime.Time, e))
	}
	return all
}
