// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ChangesTemplate reports whether a repair of a target may change the pod template. A list of
// paths that is as long as the schema allows may lack some.
func ChangesTemplate(target *v1alpha1.PlanTarget) bool {
	if target.UID == "" {
		return false // an object that is made again replaces no pods
	}
	if target.Action == v1alpha1.ActionRestart || len(target.Paths) >= maxPaths {
		return true
	}
	for _, path := range target.Paths {
		if path == "/spec" || path == "/spec/template" || strings.HasPrefix(path, "/spec/template/") {
			return true
		}
	}
	return false
}

// maxPaths is the bound of the schema of PlanTarget.
const maxPaths = 64

// Replaced returns the labels of the pods that a workload removes, before others are ready in
// their place, when its pod template changes; false when the workload removes none. The object
// is the JSON of a Deployment, StatefulSet or DaemonSet; objects of other kinds remove none.
func Replaced(kind schema.GroupKind, object []byte) (labels.Set, bool, error) {
	if kind.Group != appsv1.GroupName {
		return nil, false, nil
	}
	switch kind.Kind {
	case "Deployment":
		return ofDeployment(object)
	case "StatefulSet":
		return ofStatefulSet(object)
	case "DaemonSet":
		return ofDaemonSet(object)
	}
	return nil, false, nil
}

func ofDeployment(object []byte) (labels.Set, bool, error) {
	var d appsv1.Deployment
	if err := json.Unmarshal(object, &d); err != nil {
		return nil, false, fmt.Errorf("reading a Deployment: %w", err)
	}
	replicas := wanted(d.Spec.Replicas)
	if d.Spec.Paused || replicas == 0 {
		return nil, false, nil
	}
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		none, err := onlySurges(d.Spec.Strategy.RollingUpdate, replicas)
		if err != nil || none {
			return nil, false, err
		}
	}
	return d.Spec.Template.Labels, true, nil
}

// onlySurges reports whether a rolling update makes each pod before it removes another one. The
// controller rounds maxUnavailable down, and takes 1 when both bounds are 0:
// https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-unavailable
func onlySurges(update *appsv1.RollingUpdateDeployment, replicas int) (bool, error) {
	quarter := intstr.FromString("25%")
	unavailable, surge := &quarter, &quarter
	if update != nil && update.MaxUnavailable != nil {
		unavailable = update.MaxUnavailable
	}
	if update != nil && update.MaxSurge != nil {
		surge = update.MaxSurge
	}
	down, err := intstr.GetScaledValueFromIntOrPercent(unavailable, replicas, false)
	if err != nil {
		return false, fmt.Errorf("reading spec.strategy.rollingUpdate.maxUnavailable: %w", err)
	}
	up, err := intstr.GetScaledValueFromIntOrPercent(surge, replicas, true)
	if err != nil {
		return false, fmt.Errorf("reading spec.strategy.rollingUpdate.maxSurge: %w", err)
	}
	return down == 0 && up > 0, nil
}

func ofStatefulSet(object []byte) (labels.Set, bool, error) {
	var s appsv1.StatefulSet
	if err := json.Unmarshal(object, &s); err != nil {
		return nil, false, fmt.Errorf("reading a StatefulSet: %w", err)
	}
	partition := 0
	if update := s.Spec.UpdateStrategy.RollingUpdate; update != nil && update.Partition != nil {
		partition = int(*update.Partition)
	}
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || wanted(s.Spec.Replicas) <= partition {
		return nil, false, nil
	}
	return s.Spec.Template.Labels, true, nil
}

func ofDaemonSet(object []byte) (labels.Set, bool, error) {
	var d appsv1.DaemonSet
	if err := json.Unmarshal(object, &d); err != nil {
		return nil, false, fmt.Errorf("reading a DaemonSet: %w", err)
	}
	update := d.Spec.UpdateStrategy.RollingUpdate
	surges := update != nil && update.MaxSurge != nil && update.MaxSurge.String() != "0" && update.MaxSurge.String() != "0%"
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || surges {
		return nil, false, nil
	}
	return d.Spec.Template.Labels, true, nil
}

// wanted returns how many replicas a spec asks for.
func wanted(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}
