// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// hasRequests tells whether a run divides requests, beside replicas or alone.
func (r *Run) hasRequests() bool { return r.Division == nil || r.Division.Routed }

// groupSize is how many replicas of the canary's group a weight gives.
func (r *Run) groupSize(weight traffic.Weight) int {
	_, canary := r.Division.sizes(weight)
	return canary
}

// groupShortSince is since when the group of the canary has too few ready pods in a stage; zero if it has enough.
func (r *Run) groupShortSince(stage *StageStatus) time.Time {
	if r.Division.Routed {
		return r.Division.ShortSince
	}
	return stage.ShortSince
}

// groupArms are the groups of both variations.
func (m *machine) groupArms() map[string]Arm {
	if m.Groups != nil && m.Groups.Routed {
		return m.Groups.Arms
	}
	return m.Arms
}

// groupArm is the group of a variation; false if nothing is known of the group.
func (m *machine) groupArm(variation string) (Arm, bool) {
	arm, is := m.groupArms()[variation]
	return arm, is && arm.Revision.Hash != ""
}

// groupName names a group for people, where the variation has a workload as well.
func (m *machine) groupName(variation string) string {
	if m.next.Run.hasRequests() {
		return "Deployment " + m.group(variation)
	}
	return variation
}

// groupHash is the pod template of a group. A work that takes a run back starts from any template, so that of a
// group that is not known stands for none.
func (m *machine) groupHash(variation string) string {
	run := m.next.Run
	arm, is := m.groupArm(variation)
	switch {
	case run.hasRequests() && is:
		return arm.Revision.Hash
	case variation == run.Canary:
		return run.To.Hash
	}
	return run.From.Hash
}

// areGroupsKnown tells whether a work can name the pod templates of both groups; it waits otherwise. The revisions
// of a run without requests are those templates.
func (m *machine) areGroupsKnown() bool {
	run := m.next.Run
	for _, variation := range []string{run.Active, run.Canary} {
		if _, is := m.groupArm(variation); run.hasRequests() && !is {
			return m.waitTold(WaitCapacity, m.deadlines().Deployment, "Deployment %s, the group of %s, to be read: create it if it does not exist", m.group(variation), variation)
		}
	}
	return true
}

// areGroupPodsUp tells whether the group of the canary has the pods of its revision for the first stage; it waits
// otherwise, and ends the run at the deadline.
func (m *machine) areGroupPodsUp() bool {
	if m.next.Run.Division == nil {
		return true
	}
	canary, is := m.groupArm(m.next.Run.Canary)
	if wants := m.next.Run.groupSize(m.next.Run.firstSize()); !is || canary.Updated < canary.Targets || canary.Ready < wants {
		m.waitPods(m.groupName(m.next.Run.Canary), canary, wants)
		return false
	}
	return true
}

// measureGroup notes since when the group of the canary has too few ready pods, beside the endpoints.
func (m *machine) measureGroup(stage *StageStatus) {
	d := m.next.Run.Division
	if d == nil || !d.Routed {
		return
	}
	canary, is := m.groupArm(m.next.Run.Canary)
	switch {
	case !is:
	case canary.Ready >= m.next.Run.groupSize(stage.Weight):
		d.ShortSince = time.Time{}
	case d.ShortSince.IsZero():
		d.ShortSince = m.Now
	}
}

// JoinArms returns a workload that serves requests with the revision of both itself and a group: a new revision of
// either is one of the variation. It has no images, since a change back of one of them alone is none.
func JoinArms(serving, group Arm) Arm {
	a, b := serving.Revision, group.Revision
	serving.Revision, serving.Images = Revision{}, nil
	if a.Hash == "" || b.Hash == "" {
		return serving
	}
	serving.Revision = Revision{Hash: "both:sha256:" + digest(a.Hash, b.Hash), Image: a.Image}
	if a.Label != "" && b.Label != "" {
		serving.Revision.Label = digest(a.Label, b.Label)[:40]
	}
	if b.Image != a.Image {
		serving.Revision.Image += " + " + b.Image
	}
	return serving
}

// JoinGroups joins the arms that serve requests with the groups. A variation of which one of both is not known is
// not known.
func (f *Facts) JoinGroups() {
	if f.Groups == nil || !f.Groups.Routed {
		return
	}
	for variation, serving := range f.Arms {
		group, is := f.Groups.Arms[variation]
		if !is {
			delete(f.Arms, variation)
			continue
		}
		f.Arms[variation] = JoinArms(serving, group)
	}
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

// verdicts are those of which the first one counts, where two are given about one stage.
var verdicts = []judge.Verdict{judge.Fail, judge.BothBad, judge.NoData, judge.Undecided, judge.Pass}

// JoinHealth is the verdict about the stage under way of a run that divides requests and maybe replicas: either
// failure fails the stage, which passes if both pass. At 0 % there are no requests, so their judge passes nothing.
func (f *Facts) JoinHealth(requests Health) Health {
	s := f.Before
	n := s.Current()
	if f.Groups == nil || n == 0 || s.Run.Division == nil {
		return requests
	}
	groups := GroupHealthOf(s, f.Groups.Arms, f.Now.Truncate(time.Second))
	groups.Message = "the group of " + s.Run.Canary + ": " + groups.Message
	joined := groups
	joined.ClockStopped = requests.ClockStopped
	if s.Run.Stages[n-1].Weight == 0 && requests.Verdict != judge.Fail {
		return joined
	}
	switch a, b := rankOf(requests.Verdict), rankOf(groups.Verdict); {
	case a < b:
		joined.Verdict, joined.Message = verdicts[a], requests.Message
	case a == b:
		joined.Verdict, joined.Message = verdicts[a], strings.Trim(requests.Message+"; "+groups.Message, "; ")
	}
	return joined
}

// rankOf a verdict; one that is not known, or not given, is no data.
func rankOf(v judge.Verdict) int {
	if at := slices.Index(verdicts, v); at >= 0 {
		return at
	}
	return slices.Index(verdicts, judge.NoData)
}
