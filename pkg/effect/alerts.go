// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Alert is one firing alert. An alert that is silenced or inhibited fires all the same: its
// cause is there, and no person is told.
type Alert struct {
	Fingerprint string
	Name        string
	// StartTime is when the alert began to fire.
	StartTime time.Time
}

// AlertAnswer is one answer of the source of alerts.
type AlertAnswer struct {
	// Read says whether the answer counts, and Why what is wrong otherwise.
	Read bool
	Why  string
	// Arrive says that alerts do arrive at the source. An alert whose sender has died vanishes as
	// one that is resolved does, so without this the absence of an alert is no answer.
	Arrive bool
	// Firing are the alerts about the target.
	Firing []Alert
	// Beside are other alerts of the namespace that began to fire after the write. They lower no score.
	Beside []Alert
}

// AlertOutcome is what became of the alerts about a target.
type AlertOutcome struct {
	// Before fired when the target was written, Resolved of them do not fire any more, Firing do.
	Before, Resolved, Firing int
	// New began to fire after the write.
	New int
	// Decaying says that each alert that fires is one of before the write: a rate over minutes
	// falls for minutes after its cause has gone.
	Decaying bool
}

// CompareAlerts counts the alerts of before a write and those of now, by their fingerprints.
func CompareAlerts(before, now []Alert, written time.Time) AlertOutcome {
	var o AlertOutcome
	o.Before = len(before)
	had := func(fingerprint string) bool {
		return slices.ContainsFunc(before, func(a Alert) bool { return a.Fingerprint == fingerprint })
	}
	for _, a := range now {
		o.Firing++
		if a.StartTime.After(written) {
			o.New++
		}
	}
	for _, a := range before {
		if !slices.ContainsFunc(now, func(b Alert) bool { return a.Fingerprint == b.Fingerprint }) {
			o.Resolved++
		}
	}
	o.Decaying = o.Firing > 0 && o.New == 0 && !slices.ContainsFunc(now, func(a Alert) bool { return !had(a.Fingerprint) })
	return o
}

// JudgeAlerts scores what became of the alerts about a target. The component is NotAnswered where
// the answer does not count.
func JudgeAlerts(before []Alert, answer AlertAnswer, written time.Time) (Component, AlertOutcome) {
	switch {
	case !answer.Read:
		return Component{NotAnswered, nil, false, answer.Why}, AlertOutcome{}
	case len(answer.Firing) == 0 && !answer.Arrive:
		return Component{NotAnswered, nil, false, "no alert fires, and there is no proof that alerts arrive: name a watchdog"}, AlertOutcome{}
	}
	o := CompareAlerts(before, answer.Firing, written)
	if o.Firing > 0 {
		return Component{Assessed, new(int32(0)), true, firing(o)}, o
	}
	if o.Before == 0 {
		return Component{Assessed, new(int32(Best)), false, "no alert fired before, and no alert fires"}, o
	}
	return Component{Assessed, new(int32(Best)), false, plural.Of(o.Resolved, "alert") + " resolved"}, o
}

func firing(o AlertOutcome) string {
	why := fmt.Sprintf("%s %s", plural.Of(o.Firing, "alert"), plural.Verb(o.Firing, "fires", "fire"))
	if o.New > 0 {
		why += fmt.Sprintf(", %d of them since the write", o.New)
	}
	return why
}
