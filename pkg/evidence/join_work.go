// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"strings"
)

// workRecords are the records of one ReleaseWork.
type workRecords struct {
	intents []*workIntents
	// ended are the records of ends that tell of a write.
	ended []Record
	// matched says that a write of the work was found.
	matched bool
}

// workIntents is an intent that a record tells of. Of the writes that are bound to one version of the
// target, the API server stores one.
type workIntents struct {
	record Record
	used   bool
}

// noteWork remembers a record of a work.
func (j *joiner) noteWork(r Record) {
	w := r.Delivery.Work
	if w == nil {
		return
	}
	known := j.works[w.UID]
	if known == nil {
		known = &workRecords{}
		j.works[w.UID] = known
		j.order = append(j.order, known)
	}
	if w.Intent != nil && !known.has(w) {
		known.intents = append(known.intents, &workIntents{record: r})
	}
	if r.Wrote() {
		known.ended = append(known.ended, r)
	}
}

func (k *workRecords) has(w *Work) bool {
	for _, i := range k.intents {
		if i.record.Delivery.Work.Key() == w.Key() {
			return true
		}
	}
	return false
}

// matchWork finds the record of a write that is marked as that of a work, by the version that the intent
// binds the write to.
func (j *joiner) matchWork(w Write) bool {
	known := j.works[w.Work]
	if w.Work == "" || w.Plan != "" || known == nil || strings.HasPrefix(w.Verb, "delete") {
		return false
	}
	for _, i := range known.intents {
		work := i.record.Delivery.Work
		isBound := work.Intent.ResourceVersion == w.Before || w.Before == "" && w.Verb != "create"
		if i.used || !isBound {
			continue
		}
		i.used, known.matched = true, true
		j.report.Matched++
		if t := work.Target; t != nil && !isTarget(i.record, w) {
			p := w.problem(ProblemMismatch, fmt.Sprintf("wrote %s, and the record of its ReleaseWork tells of %s %s", w.object(), t.Kind, t.Name))
			p.Chain, p.Sequence = i.record.Chain.UID, i.record.Chain.Sequence
			j.problem(p)
		}
		return true
	}
	return false
}

// isTarget says whether a write is of the target of a work, as far as both know it.
func isTarget(r Record, w Write) bool {
	t := r.Delivery.Work.Target
	return targetText(r) == w.object() && (w.Kind == "" || w.Kind == t.Kind) && (w.UID == "" || t.UID == "" || w.UID == t.UID)
}

// targetText is group, namespace and name of a work's target; empty if the record has none.
func targetText(r Record) string {
	t := r.Delivery.Work.Target
	if t == nil {
		return ""
	}
	group, _, ok := strings.Cut(t.APIVersion, "/")
	if !ok {
		group = ""
	}
	return objectText(group, r.Delivery.Release.Namespace, t.Name)
}

// unmatchedWorks reports the ends of works that tell of a write which the log lacks.
func (j *joiner) unmatchedWorks() {
	for _, known := range j.order {
		if known.matched {
			continue
		}
		for _, r := range known.ended {
			switch {
			case j.bodiless[targetText(r)]:
			case !j.options.covers(cmpTime(r.Result.At, r.At)):
				j.report.Outside++
			default:
				j.problem(Problem{
					Kind: ProblemEvidenceWithoutWrite, Chain: r.Chain.UID, Sequence: r.Chain.Sequence, Name: Name(r.Chain.UID, r.Chain.Sequence),
					Text: fmt.Sprintf("tells that the ReleaseWork %s/%s wrote, and the audit log has no such write", r.Delivery.Release.Namespace, r.Delivery.Work.Name),
				})
			}
		}
	}
}
