// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"math"
)

// deployment: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#complete-deployment
func deployment(o object) (State, string) {
	want, all, updated := o.wanted(), o.count("replicas"), o.count("updatedReplicas")
	return first(
		o.tells,
		o.progresses,
		atLeast(updated, want, "replicas are of the new spec"),
		noMore(all, want),
		atLeast(o.count("availableReplicas"), want, "replicas are available"),
		atLeast(o.count("readyReplicas"), want, "replicas are ready"),
		o.rolledOut,
		o.available,
		done("all %d replicas are of this spec, ready and available", want),
	)
}

func (o object) progresses() (State, string) {
	if c := o.condition("Progressing"); c.reason == "ProgressDeadlineExceeded" {
		return notReady("its rollout came to a halt: %s", c.says("its progress deadline is over"))
	}
	return "", ""
}

// rolledOut asks for the controller's own word that the rollout is over. It is
// not given without a progress deadline (the controller takes the highest number
// for none), nor while the Deployment is paused; the counters say it then.
func (o object) rolledOut() (State, string) {
	deadline := number(o.spec.Get("progressDeadlineSeconds"), math.MaxInt32)
	if deadline == math.MaxInt32 || isTrue(o.spec.Get("paused")) {
		return "", ""
	}
	if c := o.condition("Progressing"); c.status != "True" || c.reason != "NewReplicaSetAvailable" {
		return notReady("its rollout is not over: %s", c.says("its controller does not say that it is"))
	}
	return "", ""
}

func (o object) available() (State, string) {
	if c := o.condition("Available"); c.status != "True" {
		return notReady("it is not available: %s", c.says("its controller does not say that it is"))
	}
	return "", ""
}

// statefulSet: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
//
// With OnDelete a person decides when a pod becomes as the spec says, and below
// a partition none does: those pods are asked to be ready, not to be new.
func statefulSet(o object) (State, string) {
	want := o.wanted()
	update := o.spec.Get("updateStrategy")
	steps := []step{
		o.tells,
		atLeast(o.count("replicas"), want, "replicas are there"),
		atLeast(o.count("readyReplicas"), want, "replicas are ready"),
		noMore(o.count("replicas"), want),
	}
	if number(o.spec.Get("minReadySeconds"), 0) > 0 {
		steps = append(steps, atLeast(o.count("availableReplicas"), want, "replicas are available"))
	}
	if update.Get("type").Text() == onDelete {
		return first(append(steps, done("all %d replicas are ready; they become new when they are deleted", want))...)
	}
	partition := number(update.Get("rollingUpdate").Get("partition"), 0)
	renewed := max(0, want-partition)
	steps = append(steps, atLeast(o.count("updatedReplicas"), renewed, "replicas are of the new spec"))
	if partition == 0 {
		steps = append(steps, o.oneRevision)
	}
	return first(append(steps, done("all %d replicas are ready, %d of them of this spec", want, renewed))...)
}

const onDelete = "OnDelete"

func (o object) oneRevision() (State, string) {
	if o.status.Get("currentRevision").Text() != o.status.Get("updateRevision").Text() {
		return notReady("its rollout is not over")
	}
	return "", ""
}

// daemonSet: https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/
func daemonSet(o object) (State, string) {
	want := number(o.status.Get("desiredNumberScheduled"), -1)
	steps := []step{
		o.tells,
		func() (State, string) {
			if want < 0 {
				return notReady("it does not say on how many nodes it is to run")
			}
			return "", ""
		},
		atLeast(o.count("currentNumberScheduled"), want, "nodes have a pod"),
	}
	if o.spec.Get("updateStrategy").Get("type").Text() != onDelete {
		steps = append(steps, atLeast(o.count("updatedNumberScheduled"), want, "nodes have a pod of the new spec"))
	}
	return first(append(steps,
		atLeast(o.count("numberAvailable"), want, "nodes have an available pod"),
		atLeast(o.count("numberReady"), want, "nodes have a ready pod"),
		done("all %d nodes have a ready pod", want),
	)...)
}

func replicaSet(o object) (State, string) {
	want := o.wanted()
	return first(
		o.tells,
		func() (State, string) {
			if c := o.condition("ReplicaFailure"); c.status == "True" {
				return notReady("its pods cannot be made: %s", c.says("it does not say why"))
			}
			return "", ""
		},
		atLeast(o.count("fullyLabeledReplicas"), want, "replicas have its labels"),
		atLeast(o.count("availableReplicas"), want, "replicas are available"),
		atLeast(o.count("readyReplicas"), want, "replicas are ready"),
		noMore(o.count("replicas"), want),
		done("all %d replicas are ready and available", want),
	)
}
