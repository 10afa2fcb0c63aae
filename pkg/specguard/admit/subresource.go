// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// validateScale judges a write of /scale. The review shows a Scale, which has
// the parent's name, uid and resourceVersion and neither its labels nor its
// kind; the kind follows from the resource. Where every guard in question
// selects by label, the write may be unguarded, and the warning says so.
func (v *Reviewer) validateScale(snapshot *Snapshot, r *admission.Review) admission.Answer {
	parent, ok := snapshot.Parents[GroupResource{r.Resource.Group, r.Resource.Resource}]
	if !ok {
		// No guard names a kind of this resource; see Guards for how that is known.
		return admission.Answer{Verdict: VerdictUnguarded}
	}
	rules := snapshot.rulesUnseen(r.Namespace, r.Name, parent, v.Now())
	if rules.Empty() {
		return admission.Answer{Verdict: VerdictUnguarded}
	}
	object, old, err := pair(r)
	if err != nil {
		return admission.Unassessed(reasonOf(err), err)
	}
	defer object.release()
	defer old.release()
	replicas, err := replicasOf(object)
	if err != nil {
		return admission.Unassessed(admission.ReasonObject, err)
	}
	before, err := replicasOf(old)
	if err != nil {
		return admission.Unassessed(admission.ReasonObject, err)
	}
	if before == replicas {
		return admission.Answer{Verdict: VerdictAllow, Audit: map[string]string{"verdict": string(VerdictAllow), "fields": "0"}}
	}
	changes := []diff.Change{{Path: replicasPath, Op: diff.Changed, Before: decimal(before), After: decimal(replicas)}}
	answer := judge(rules, r, parent, changes)
	rec := v.record(r, parent, object, old)
	rec.Replicas = &replicas
	rec.Fields = fieldsOf(changes)
	v.enqueue(r, rec)
	return answer
}

// replicasPath is where /scale writes in the parent; so it is in all built-in kinds.
var replicasPath = func() canon.Path {
	p, err := canon.ParsePath("/spec/replicas")
	if err != nil {
		panic("admit: " + err.Error()) // a constant of this package
	}
	return p
}()

// replicasOf reads a Scale; like the API server, it takes absence for zero.
func replicasOf(scale object) (int32, error) {
	if !scale.exists() {
		return 0, errors.New("a review of /scale without a Scale")
	}
	v := scale.doc.Root().Get("spec").Get("replicas")
	if !v.Exists() {
		return 0, nil
	}
	n, err := strconv.ParseInt(v.Text(), 10, 32)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("spec.replicas %q is no count", v.Text())
	}
	return int32(n), nil
}

func decimal(n int32) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// impliedOwners are the kinds that stand behind a pod's controller: a guard on
// a Deployment covers the pods of its ReplicaSets.
var impliedOwners = map[canon.GVK]canon.GVK{
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}: {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"}:       {Group: "batch", Version: "v1", Kind: "CronJob"},
}

// validatePod judges pods/ephemeralcontainers and pods/resize: a pod is bent
// out of the shape that its workload gave it, which no hash of the workload
// shows. The record has the pod's uid and names the owner's first.
func (v *Reviewer) validatePod(snapshot *Snapshot, r *admission.Review) admission.Answer {
	now := v.Now()
	object, old, err := pair(r)
	if err != nil {
		return admission.Unassessed(reasonOf(err), err)
	}
	defer object.release()
	defer old.release()
	if !object.exists() || !old.exists() {
		return admission.Unassessed(admission.ReasonMalformed, admission.ErrMalformed)
	}
	rules, owner := podRules(snapshot, r, object, old, now)
	if rules.Empty() {
		return admission.Answer{Verdict: VerdictUnguarded}
	}
	changes := changesOf(object, old)
	review := reviewOf(r, kindOf(r), changes)
	review.OfWorkload = owner != nil
	answer := answerTo(rules, review)
	if len(changes) == 0 {
		return answer
	}
	rec := v.record(r, kindOf(r), object, old)
	rec.Generation = object.generation()
	rec.HashAfter = string(object.hash())
	if owner != nil {
		rec.Fields = append(rec.Fields, "/metadata/ownerReferences/[uid="+string(owner.UID)+"]")
	}
	rec.Fields = append(rec.Fields, fieldsOf(changes)[:min(len(changes), maxFields-len(rec.Fields))]...)
	v.enqueue(r, rec)
	return answer
}

// podRules are the rules of a pod: its own when it stands for itself, else
// those of the workload that its controller belongs to. The owner is nil for
// the former.
func podRules(snapshot *Snapshot, r *admission.Review, object, old object, now time.Time) (specguard.Rules, *metav1.OwnerReference) {
	owners := old.owners()
	if specguard.IsRoot(operationOf(r), kindOf(r), owners, owners) {
		return snapshot.rules(r.Namespace, r.Name, kindOf(r), now, object.labels(), old.labels()), nil
	}
	for i := range owners {
		if owners[i].Controller == nil || !*owners[i].Controller {
			continue
		}
		kind := canon.ParseGVK(owners[i].APIVersion, owners[i].Kind)
		if behind, ok := impliedOwners[kind]; ok {
			if rules := snapshot.rulesUnseen(r.Namespace, "", behind, now); !rules.Empty() {
				return rules, &owners[i]
			}
		}
		return snapshot.rulesUnseen(r.Namespace, owners[i].Name, kind, now), &owners[i]
	}
	return specguard.Rules{}, nil
}
