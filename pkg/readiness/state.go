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

// Knowledge is what is known beside the object itself. The zero Knowledge is valid.
type Knowledge struct {
	// Status says whether objects of the kind can tell that they are ready.
	Status Status
	// Rule is what people say of the kind; nil when they say nothing.
	Rule *Rule
}

// Of judges one object by its JSON alone.
func Of(object []byte, gvk canon.GVK) (State, string) { return Judge(object, gvk, Knowledge{}) }

// Judge judges one object by its JSON, status included, of at most
// [canon.MaxBodyBytes]. The message is a sentence for people without a full
// stop; it is never empty.
func Judge(object []byte, gvk canon.GVK, known Knowledge) (State, string) {
	doc, err := canon.Parse(object, gvk)
	if err != nil {
		return Unknown, "it cannot be read: " + err.Error()
	}
	defer doc.Release()
	return judge(doc, known)
}

// OfDocument is [Of] for an object that was parsed already.
func OfDocument(doc *canon.Document) (State, string) { return judge(doc, Knowledge{}) }

// Silent says of an object that it is one of a custom kind, and that its status holds no
// word by which readiness is told: then [Knowledge.Status] decides.
func Silent(object []byte, gvk canon.GVK) bool {
	if _, has := builtIn[kind{gvk.Group, gvk.Kind}]; has || native(gvk.Group) {
		return false
	}
	doc, err := canon.Parse(object, gvk)
	if err != nil {
		return false
	}
	defer doc.Release()
	return read(doc).silent()
}

func read(doc *canon.Document) object {
	return object{doc.Root(), doc.Root().Get("spec"), doc.Root().Get("status")}
}

func judge(doc *canon.Document, known Knowledge) (State, string) {
	o := read(doc)
	if at := o.root.Get("metadata").Get("deletionTimestamp"); at.Kind() == canon.String && at.Text() != "" {
		return notReady("it is being deleted")
	}
	if s, message := o.observed(); s != "" {
		return s, message
	}
	if s, message := o.abnormal(); s != "" {
		return s, message
	}
	if known.Rule != nil {
		return known.Rule.judge(doc)
	}
	gvk := doc.GVK()
	if judge, ok := builtIn[kind{gvk.Group, gvk.Kind}]; ok {
		return judge(o)
	}
	if native(gvk.Group) {
		return ready("a %s is ready as it is stored", gvk.Kind)
	}
	if o.silent() {
		return asStored(gvk.Kind, known.Status)
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
