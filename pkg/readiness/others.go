// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// job that runs is ready: whether it will succeed nobody knows, and it does what
// its spec says.
func job(o object) (State, string) {
	if c := o.condition("Failed"); c.status == "True" {
		return notReady("it failed: %s", c.says("it does not say why"))
	}
	if o.condition("Complete").status == "True" {
		return ready("it is complete")
	}
	if isTrue(o.spec.Get("suspend")) {
		if o.condition("Suspended").status == "True" {
			return ready("it is suspended, as its spec says")
		}
		return notReady("it is not suspended yet")
	}
	if o.status.Get("startTime").Kind() != canon.String {
		return notReady("it has not started")
	}
	return ready("it runs")
}

// cronJob has no status before its first run, and none that says that it works.
func cronJob(object) (State, string) { return ready("a CronJob is ready as it is stored") }

func pod(o object) (State, string) {
	switch phase := o.status.Get("phase").Text(); phase {
	case "Succeeded":
		return ready("it ended well")
	case "Failed":
		return notReady("it failed")
	case "Pending":
		return notReady("it has not started")
	case "Running":
		if c := o.condition("Ready"); c.status != "True" {
			return notReady("its containers are not ready: %s", c.says("it does not say why"))
		}
		return ready("its containers are ready")
	case "":
		return notReady("no controller has looked at it yet")
	default: // among them Unknown, when its node is silent
		return unknown("its phase is %q", phase)
	}
}

func volumeClaim(o object) (State, string) {
	switch phase := o.status.Get("phase").Text(); phase {
	case "Bound":
		return ready("it is bound")
	case "":
		return notReady("no controller has looked at it yet")
	default:
		return notReady("it is %s", phase)
	}
}

// service of type LoadBalancer waits for whoever makes load balancers.
func service(o object) (State, string) {
	if o.spec.Get("type").Text() != "LoadBalancer" {
		return ready("a Service is ready as it is stored")
	}
	if o.status.Get("loadBalancer").Get("ingress").Len() == 0 {
		return notReady("it has no load balancer yet")
	}
	return ready("it has a load balancer")
}

func disruptionBudget(o object) (State, string) {
	if state, message := o.tells(); state != "" {
		return state, message
	}
	if c := o.condition("DisruptionAllowed"); c.reason == "SyncFailed" {
		return notReady("it does not count: %s", c.says("it does not say why"))
	}
	return ready("its controller has counted its pods")
}

// autoscaler that cannot read its metrics does not scale.
func autoscaler(o object) (State, string) {
	for _, name := range []string{"AbleToScale", "ScalingActive"} {
		switch c := o.condition(name); c.status {
		case "True":
		case "False":
			// Scaling is switched off on purpose while the target has no replicas.
			if c.reason == "ScalingDisabled" {
				continue
			}
			return notReady("it does not scale: %s", c.says("it does not say why"))
		case "":
			return notReady("its controller has not looked at it yet")
		default:
			return unknown("whether it scales is not known: %s", c.says("it does not say why"))
		}
	}
	return ready("it scales")
}

// silent says that a status holds neither conditions nor observedGeneration.
func (o object) silent() bool {
	conditions := o.status.Get("conditions")
	none := conditions.Kind() <= canon.Null || conditions.Kind() == canon.List && conditions.Len() == 0
	return none && o.status.Get("observedGeneration").Kind() != canon.Number
}

// asStored judges a custom object that is silent.
//
// The rule is that of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus/status, Compute): "the
// absence of any known conditions means the resource is current". kstatus applies it to
// every object. Here it holds for kinds whose schema has no place for such words: a kind
// that has one is silent until its controller has written the first status.
func asStored(kind string, status Status) (State, string) {
	switch status {
	case StatusNone:
		return ready("a %s is ready as it is stored: its kind reports no conditions", kind)
	case StatusReported:
		return notReady("its controller has not reported yet")
	case StatusUnknown:
	}
	return unknown("it does not say whether it is ready")
}

// custom is any kind that Kubernetes does not know: the condition Ready, and
// where there is none, that its controller has seen this generation and has
// nothing against it.
func custom(o object) (State, string) {
	switch c := o.condition("Ready"); c.status {
	case "True":
		return ready("it says that it is ready")
	case "False":
		return notReady("it says that it is not ready: %s", c.says("it does not say why"))
	case "":
	default:
		return unknown("it does not know whether it is ready: %s", c.says("it does not say why"))
	}
	if c := o.condition("Available"); c.status == "False" {
		return notReady("it says that it is not available: %s", c.says("it does not say why"))
	}
	if o.status.Get("observedGeneration").Kind() == canon.Number {
		return ready("its controller has looked at this generation, and has no objection")
	}
	return unknown("it does not say whether it is ready")
}
