// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// Next returns what is to be done next for a work. The same facts give the same action.
func Next(f *Facts) Action {
	if Final(f.Work.Status.Phase) {
		return Action{Kind: Done}
	}
	if f.Unread == "" && written(f) {
		return verify(f)
	}
	if o := objectTo(f); o != nil {
		return refuse(f, o)
	}
	body, err := desired(f)
	if refused, is := errors.AsType[*clone.RefusedError](err); is {
		return refuse(f, object(v1alpha1.WorkInvalidSpec, "%s", refused.Error()))
	}
	if err != nil {
		return refuse(f, object(v1alpha1.WorkTargetMoved, "%s", err.Error()))
	}
	switch {
	case body != nil:
		return send(f, body)
	case Holds(&f.Work.Spec):
		return settleHold(f)
	}
	return succeed(f, "no write was necessary")
}

// target returns the object that the work writes; nil if it does not exist.
func target(f *Facts) *unstructured.Unstructured {
	if scalesGroup(f) {
		return groupTarget(f)
	}
	switch f.Work.Spec.Verb {
	case v1alpha1.WorkUpdateBaseline:
		return f.Baseline
	case v1alpha1.WorkHoldMinReplicas:
		return autoscalerOf(f)
	case v1alpha1.WorkCreateClone, v1alpha1.WorkScale:
	}
	return f.Clone
}

// written says whether the target has a write of this work. Label and content come with one write.
func written(f *Facts) bool {
	t := target(f)
	return t != nil && f.Work.Status.Intent != nil && t.GetLabels()[v1alpha1.LabelReleaseWork] == string(f.Work.UID)
}

// verify ends a work that has written, by what the target has now.
func verify(f *Facts) Action {
	var a Action
	if asIntended(f, target(f), f.Work.Status.Intent.TemplateHash) {
		a = succeed(f, "")
	} else {
		a = end(f, v1alpha1.WorkFailed, object(v1alpha1.WorkTargetMoved, "another writer changed the %s %s after the executor wrote it", target(f).GetKind(), target(f).GetName()))
	}
	a.Status.Result = resultOf(f)
	return a
}

// resultOf returns what is known of the write. An executor that has died has left no answer.
func resultOf(f *Facts) *v1alpha1.ReleaseWorkResult {
	if w := f.Wrote; w != nil && w.Result == Stored && w.Object != nil {
		return &v1alpha1.ReleaseWorkResult{ResourceVersion: w.Object.GetResourceVersion(), Origin: v1alpha1.ResultResponse}
	}
	return &v1alpha1.ReleaseWorkResult{ResourceVersion: target(f).GetResourceVersion(), Origin: v1alpha1.ResultRecovered}
}

// asIntended says whether an object has the pod template and the replicas that the work wants. A
// Scale to 0 wants no pod template.
func asIntended(f *Facts, t *unstructured.Unstructured, hash string) bool {
	spec := &f.Work.Spec
	if Holds(spec) {
		return holdsAsIntended(f, t)
	}
	if spec.Replicas != nil && clone.Replicas(t) != *spec.Replicas {
		return false
	}
	if ScalesToZero(spec) {
		return true
	}
	got, err := clone.TemplateHash(t)
	return err == nil && got == hash
}

// errAltered says that a clone has another pod template than the release gives.
var errAltered = errors.New("the clone has another pod template than the release gives: another writer changed it")

// desired computes the target as the work leaves it; nil if the target is so already.
func desired(f *Facts) (*unstructured.Unstructured, error) {
	spec := &f.Work.Spec
	switch {
	case scalesGroup(f):
		return scaledGroup(f)
	case Holds(spec):
		return held(f)
	case ScalesToZero(spec):
		return scaled(f)
	case spec.Verb == v1alpha1.WorkUpdateBaseline:
		changed, err := clone.Change(f.Release, spec.Variation, f.Baseline)
		if err != nil {
			return nil, err //nolint:wrapcheck // the message is for the author of the release
		}
		return unless(f, changed, f.Baseline)
	}
	body, err := clone.BodyOf(f.Release, spec.Variation, f.Baseline, f.Service, *spec.Replicas)
	if err != nil {
		return nil, err //nolint:wrapcheck // the message is for the author of the release
	}
	if f.Clone == nil {
		return marked(f, body), nil
	}
	if spec.Verb == v1alpha1.WorkScale {
		wanted, err := clone.TemplateHash(body)
		got, failed := clone.TemplateHash(f.Clone)
		if err != nil || failed != nil || got != wanted {
			return nil, errAltered
		}
		return scaled(f)
	}
	return unless(f, clone.Renew(f.Clone, body), f.Clone)
}

// scaled returns the clone with the replicas of the work; nil if it has them, or does not exist.
func scaled(f *Facts) (*unstructured.Unstructured, error) {
	if f.Clone == nil || clone.Replicas(f.Clone) == *f.Work.Spec.Replicas {
		return nil, nil //nolint:nilnil // nothing to write is no error
	}
	out := f.Clone.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, int64(*f.Work.Spec.Replicas), "spec", "replicas"); err != nil {
		return nil, errAltered
	}
	return marked(f, out), nil
}

// unless returns the wanted object, or nil if the live one has its pod template and replicas.
func unless(f *Facts, wanted, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	hash, err := clone.TemplateHash(wanted)
	if err != nil {
		return nil, errAltered
	}
	if asIntended(f, live, hash) {
		return nil, nil //nolint:nilnil // nothing to write is no error
	}
	return marked(f, wanted), nil
}

// marks are the labels of earlier writes by the executor. The audit log of the API server and the
// records of plans are joined by those of plans, and a write of a work is no write of a plan.
var marks = []string{
	"plumbline.dev/plan", "plumbline.dev/step", "plumbline.dev/fence", v1alpha1.LabelReleaseWork, v1alpha1.LabelReleaseWorkFence,
}

// ownLabels returns the labels of an object without the marks of earlier writes by the executor.
func ownLabels(object *unstructured.Unstructured) map[string]string {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for _, mark := range marks {
		delete(labels, mark)
	}
	return labels
}

// marked returns an object with the label of the work.
func marked(f *Facts, object *unstructured.Unstructured) *unstructured.Unstructured {
	labels := ownLabels(object)
	labels[v1alpha1.LabelReleaseWork] = string(f.Work.UID)
	object.SetLabels(labels)
	return object
}

// send goes from the dry run to the intent, and from the intent to the write.
func send(f *Facts, body *unstructured.Unstructured) Action {
	hash, err := hashOf(f, body)
	if err != nil {
		return refuse(f, object(v1alpha1.WorkInvalidSpec, "%s", err.Error()))
	}
	create := target(f) == nil
	version := body.GetResourceVersion()
	if intent := f.Work.Status.Intent; intent != nil && intent.UID == string(body.GetUID()) && intent.ResourceVersion == version && intent.TemplateHash == hash {
		if !create || f.Now.Before(intent.StorageTime.Add(CreationWindow)) {
			return write(f, body, create)
		}
	}
	if f.Tried == nil || f.Tried.ResourceVersion != version {
		return Action{Kind: Try, Body: body, Create: create, Intended: f.Now}
	}
	switch f.Tried.Result {
	case Stored:
	case Conflicted:
		return Action{Kind: Look}
	case Refused:
		return refuse(f, object(v1alpha1.WorkWriteRefused, "the API server refuses a dry run: %s", f.Tried.Message))
	case Lost:
		return refuse(f, &objection{v1alpha1.WorkUnreadable, "a dry run got no answer: " + f.Tried.Message, true})
	}
	if f.Tried.Object == nil || !asIntended(f, f.Tried.Object, hash) {
		return refuse(f, object(v1alpha1.WorkWouldNotConverge, "a dry run of the write leaves another pod template or other replicas: an admission webhook changes the %s %s", body.GetKind(), body.GetName()))
	}
	return intend(f, body, hash)
}

// intend stores what the next write is about.
func intend(f *Facts, body *unstructured.Unstructured, hash string) Action {
	status := statusOf(f, v1alpha1.WorkRunning, &objection{})
	status.Intent = &v1alpha1.ReleaseWorkIntent{UID: string(body.GetUID()), ResourceVersion: body.GetResourceVersion(), TemplateHash: hash, StorageTime: metav1.NewTime(f.Now)}
	switch {
	case Holds(&f.Work.Spec):
		status.Held = recordOf(f, target(f))
	case scalesGroup(f):
		status.GroupReplicas = new(replicasOf(f))
	}
	return Action{Kind: Intend, Status: status}
}

// hashOf returns the hash of a body's pod template; empty of an autoscaler, which has none.
func hashOf(f *Facts, body *unstructured.Unstructured) (string, error) {
	if Holds(&f.Work.Spec) {
		return "", nil
	}
	return clone.TemplateHash(body) //nolint:wrapcheck // the message is for the author of the release
}

// unfenced says that the write of an intent may be stored although this process sent none, or got
// no answer: the target has the version of the intent.
func unfenced(f *Facts) bool {
	intent, t := f.Work.Status.Intent, target(f)
	if intent == nil || t == nil || intent.ResourceVersion == "" {
		return false
	}
	same := string(t.GetUID()) == intent.UID && t.GetResourceVersion() == intent.ResourceVersion
	answered := f.Wrote != nil && f.Wrote.ResourceVersion == intent.ResourceVersion && f.Wrote.Result != Lost
	return same && !answered
}

// fenced returns the target with another label, and nothing else changed.
func fenced(f *Facts) *unstructured.Unstructured {
	out := target(f).DeepCopy()
	labels := ownLabels(out)
	labels[v1alpha1.LabelReleaseWorkFence] = string(f.Work.UID)
	out.SetLabels(labels)
	return out
}

// outlived is how long after its intent a creation can still be stored, which an executor sent that
// has died since. The API server admits no creation after that.
const outlived = time.Minute

// underWay says that a creation may be stored although this process sent none, or got no answer. A
// work that is refused then would have made its target all the same.
func underWay(f *Facts) bool {
	intent := f.Work.Status.Intent
	if intent == nil || intent.UID != "" || target(f) != nil || !f.Now.Before(intent.StorageTime.Add(outlived)) {
		return false
	}
	return f.Wrote == nil || f.Wrote.Result == Lost
}

// CreationWindow is how long after its intent a creation is sent. A creation is bound to no version,
// so the intent is stored anew after that.
const CreationWindow = 20 * time.Second

// write sends the body of the intent, unless an answer of this process says what came of it.
func write(f *Facts, body *unstructured.Unstructured, create bool) Action {
	if f.Wrote == nil || f.Wrote.ResourceVersion != body.GetResourceVersion() {
		if NeedsRecord(f.Work, f.Release) && !f.Recorded {
			return Action{Kind: Wait, Status: *f.Work.Status.DeepCopy()}
		}
		return Action{Kind: Write, Body: body, Create: create, Intended: f.Work.Status.Intent.StorageTime.Time}
	}
	switch f.Wrote.Result {
	case Refused:
		return refuse(f, object(v1alpha1.WorkWriteRefused, "the API server refuses the write: %s", f.Wrote.Message))
	case Lost:
		return refuse(f, &objection{v1alpha1.WorkUnreadable, "the write got no answer: " + f.Wrote.Message, true})
	case Stored, Conflicted:
	}
	// The target was read after the answer and is as before, so the read was too early.
	return Action{Kind: Wait, Status: *f.Work.Status.DeepCopy()}
}

func refuse(f *Facts, o *objection) Action {
	if !o.waits && unfenced(f) {
		return Action{Kind: Fence, Body: fenced(f)}
	}
	if !o.waits && !underWay(f) {
		return end(f, v1alpha1.WorkRefused, o)
	}
	phase := v1alpha1.WorkPending
	if f.Work.Status.Intent != nil {
		phase = v1alpha1.WorkRunning
	}
	return Action{Kind: Wait, Status: statusOf(f, phase, o)}
}

func succeed(f *Facts, message string) Action {
	a := end(f, v1alpha1.WorkSucceeded, &objection{message: message})
	if t := target(f); t != nil {
		if hash, err := hashOf(f, t); err == nil {
			a.Status.TemplateHash = hash
		}
	}
	return a
}

func end(f *Facts, phase v1alpha1.ReleaseWorkPhase, o *objection) Action {
	status := statusOf(f, phase, o)
	status.EndTime = new(metav1.NewTime(f.Now))
	return Action{Kind: End, Status: status}
}

// maxMessage is the longest message of a status, in bytes.
const maxMessage = 1024

// statusOf returns the status of a work that is in a phase.
func statusOf(f *Facts, phase v1alpha1.ReleaseWorkPhase, o *objection) v1alpha1.ReleaseWorkStatus {
	status := *f.Work.Status.DeepCopy()
	status.ObservedGeneration = f.Work.Generation
	status.Phase, status.Reason, status.Message = phase, o.reason, diff.TruncateText(o.message, maxMessage)
	if status.StartTime == nil {
		status.StartTime = new(metav1.NewTime(f.Now))
	}
	t := target(f)
	switch name := TargetName(f.Work, f.Release); {
	case Holds(&f.Work.Spec) && t != nil:
		status.TargetRef = &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetAutoscaler, Name: t.GetName(), UID: string(t.GetUID())}
	case name != "":
		status.TargetRef = &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetDeployment, Name: name}
		if t != nil {
			status.TargetRef.UID = string(t.GetUID())
		}
	}
	return status
}
