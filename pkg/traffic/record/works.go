// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

func placeOf(w *v1alpha1.ReleaseWork) Place { return Place{w.Spec.Run, w.Spec.Number} }

// endTime is when a work ended. A work without that time has ended since it was made.
func endTime(w *v1alpha1.ReleaseWork) time.Time {
	if w.Status.EndTime != nil {
		return w.Status.EndTime.Time
	}
	return w.CreationTimestamp.Time
}

// IntentKey names the intent of a work among those of all works; empty if the work has none.
func IntentKey(w *v1alpha1.ReleaseWork) string {
	if w.Status.Intent == nil {
		return ""
	}
	return workOf(w).Key()
}

// EndKey names the end of a work; empty if the work has not ended.
func EndKey(w *v1alpha1.ReleaseWork) string {
	if !work.Final(w.Status.Phase) {
		return ""
	}
	return evidence.EndKey(string(w.UID), endTime(w))
}

// HasIntent says whether the intent of a work is recorded.
func (c Cursors) HasIntent(w *v1alpha1.ReleaseWork) bool {
	cursor, known := c[w.Spec.ReleaseUID]
	return known && w.Status.Intent != nil && cursor.hasIntent(workOf(w))
}

// HasEnd says whether the end of a work is recorded.
func (c Cursors) HasEnd(w *v1alpha1.ReleaseWork) bool {
	cursor, known := c[w.Spec.ReleaseUID]
	return known && work.Final(w.Status.Phase) && cursor.hasEnd(placeOf(w), EndKey(w))
}

// workOf returns what a record tells of a work.
func workOf(w *v1alpha1.ReleaseWork) *evidence.Work {
	out := &evidence.Work{
		Name: w.Name, UID: string(w.UID), Run: w.Spec.Run, Number: w.Spec.Number, Verb: wordOf(string(w.Spec.Verb)), Variation: string(w.Spec.Variation),
		Replicas: w.Spec.Replicas, ExpectedHash: hashOf(w.Spec.ExpectedHash),
	}
	if t := w.Status.TargetRef; t != nil {
		out.Target = &evidence.WorkTarget{APIVersion: versionOf(t.Kind), Kind: wordOf(string(t.Kind)), Name: t.Name, UID: t.UID}
	}
	if i := w.Status.Intent; i != nil {
		out.Intent = &evidence.WorkIntent{UID: i.UID, ResourceVersion: i.ResourceVersion, TemplateHash: hashOf(i.TemplateHash), At: i.StorageTime.Time}
	}
	return out
}

func versionOf(kind v1alpha1.ReleaseWorkTargetKind) string {
	switch kind {
	case v1alpha1.WorkTargetAutoscaler:
		return "autoscaling/v2"
	case v1alpha1.WorkTargetDeployment:
		return "apps/v1"
	}
	return "unknown"
}

// subjectOfWork is the ReleaseWork, with the digest of its spec, which does not change.
func subjectOfWork(w *v1alpha1.ReleaseWork) evidence.Subject {
	spec, err := json.Marshal(&w.Spec)
	if err != nil {
		panic("the spec of a ReleaseWork cannot be encoded: " + err.Error()) // strings and numbers always can
	}
	return evidence.Subject{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ReleaseWork", Namespace: w.Namespace, Name: w.Name, UID: string(w.UID), Hash: evidence.Digest(spec),
	}
}

var hashPattern = regexp.MustCompile(`^([a-z][a-z0-9]{0,15}:)?sha256:[0-9a-f]{64}$`)

// hashOf returns a hash; empty for all that is none, as in a work that was forged.
func hashOf(text string) string {
	if hashPattern.MatchString(text) {
		return text
	}
	return ""
}

// percentOf returns a percentage as a record has it; empty for one that is missing.
func percentOf(p *v1alpha1.Percentage) string {
	if p == nil {
		return ""
	}
	weight, ok := release.WeightOf(*p)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(float64(weight)/100, 'f', -1, 64)
}
