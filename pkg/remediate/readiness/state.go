// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// State says whether an object does what its spec says.
type State string

// The states. What is not known is Unknown, never one of the others; the zero
// State is that nobody asked.
const (
	// Ready: it does.
	Ready State = "Ready"
	// NotReady: it does not, or not yet.
	NotReady State = "NotReady"
	// Unknown: the object cannot be read, or does not say.
	Unknown State = "Unknown"
)

// Of judges one object by its JSON, status included, of at most
// [canon.MaxBodyBytes]. The message is a sentence for people without a full
// stop; it is never empty.
func Of(object []byte, gvk canon.GVK) (State, string) {
	doc, err := canon.Parse(object, gvk)
	if err != nil {
		return Unknown, "it cannot be read: " + err.Error()
	}
	defer doc.Release()
	return OfDocument(doc)
}

// OfDocument is [Of] for an object that was parsed already.
func OfDocument(doc *canon.Document) (State, string) {
	o := object{doc.Root(), doc.Root().Get("spec"), doc.Root().Get("status")}
	if at := o.root.Get("metadata").Get("deletionTimestamp"); at.Kind() == canon.String && at.Text() != "" {
		return notReady("it is being deleted")
	}
	if s, message := o.observed(); s != "" {
		return s, message
	}
	if s, message := o.abnormal(); s != "" {
		return s, message
	}
	gvk := doc.GVK()
	if judge, ok := builtIn[kind{gvk.Group, gvk.Kind}]; ok {
		return judge(o)
	}
	if native(gvk.Group) {
		return ready("a %s is ready as it is stored", gvk.Kind)
	}
	return custom(o)
}

type kind struct{ group, kind string }

// builtIn are the kinds whose status has a meaning of its own.
var builtIn = map[kind]func(object) (State, string){
	{"apps", "Deployment"}:                     deployment,
	{"apps", "StatefulSet"}:                    statefulSet,
	{"apps", "DaemonSet"}:                      daemonSet,
	{"apps", "ReplicaSet"}:                     replicaSet,
	{"", "ReplicationController"}:              replicaSet,
	{"", "Pod"}:                                pod,
	{"", "PersistentVolumeClaim"}:              volumeClaim,
	{"", "Service"}:                            service,
	{"batch", "Job"}:                           job,
	{"batch", "CronJob"}:                       cronJob,
	{"policy", "PodDisruptionBudget"}:          disruptionBudget,
	{"autoscaling", "HorizontalPodAutoscaler"}: autoscaler,
}

func ready(format string, args ...any) (State, string) { return Ready, fmt.Sprintf(format, args...) }

func notReady(format string, args ...any) (State, string) {
	return NotReady, fmt.Sprintf(format, args...)
}

func unknown(format string, args ...any) (State, string) {
	return Unknown, fmt.Sprintf(format, args...)
}
