// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

const healthFile = "../../examples/argocd-health.yaml"

// healthScript reads the script that the example gives Argo CD.
func healthScript(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(healthFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Data map[string]string `json:"data"`
	}
	var customizations map[string]map[string]string
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(file.Data["resource.customizations"]), &customizations); err != nil {
		t.Fatal(err)
	}
	return customizations["plumbline.dev/*"]["health.lua"]
}

// health is the answer of a script.
type health struct{ Status, Message string }

// runHealth runs a script about an object, with the libraries that Argo CD opens.
func runHealth(t *testing.T, script string, object any) health {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", luaOf(l, fields))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, is := l.Get(-1).(*lua.LTable)
	if !is {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return health{lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))}
}

// luaOf makes a value of Lua of a value of JSON.
func luaOf(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for name, field := range value {
			table.RawSetString(name, luaOf(l, field))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, element := range value {
			table.Append(luaOf(l, element))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

func TestArgoCDShowsTheHealthOfOurKinds(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Message: "of " + name}
	}
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue)
	guard := func(conditions ...metav1.Condition) *v1alpha1.SpecGuard {
		g := &v1alpha1.SpecGuard{TypeMeta: metav1.TypeMeta{Kind: "SpecGuard"}, ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		g.Status.ObservedGeneration, g.Status.Conditions = 2, conditions
		return g
	}
	old := guard(ready)
	old.Status.ObservedGeneration = 1
	release := func(waiting *v1alpha1.RolloutWait, conditions ...metav1.Condition) *v1alpha1.ABRelease {
		r := &v1alpha1.ABRelease{TypeMeta: metav1.TypeMeta{Kind: "ABRelease"}, ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		conditions = append(conditions, ready)
		r.Status.ObservedGeneration, r.Status.Conditions = 1, conditions
		r.Status.Rollout = &v1alpha1.RolloutStatus{Waiting: waiting}
		return r
	}
	waits := func(reason rollout.WaitReason) *v1alpha1.RolloutWait {
		return &v1alpha1.RolloutWait{Reason: string(reason), Message: "of the wait"}
	}
	progressing := condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue)
	script := healthScript(t)
	for name, tc := range map[string]struct {
		object any
		want   health
	}{
		"a guard that is active":       {guard(ready), health{"Healthy", "of Ready"}},
		"a guard without a status":     {&v1alpha1.SpecGuard{TypeMeta: metav1.TypeMeta{Kind: "SpecGuard"}}, health{"Progressing", "Plumbline has not seen this version yet"}},
		"a guard of a version before":  {old, health{"Progressing", "Plumbline has not seen this version yet"}},
		"a guard that is not ready":    {guard(condition(v1alpha1.ConditionReady, metav1.ConditionFalse)), health{"Progressing", "of Ready"}},
		"a guard that waits":           {guard(ready, condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue)), health{"Progressing", "of Reconciling"}},
		"a guard that is wrong":        {guard(condition(v1alpha1.ConditionStalled, metav1.ConditionTrue), ready), health{"Degraded", "of Stalled"}},
		"a mass drift":                 {guard(ready, condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue)), health{"Degraded", "of Degraded"}},
		"a mass drift that is over":    {guard(ready, condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse)), health{"Healthy", "of Ready"}},
		"a guard that is suspended":    {guard(ready, condition(v1alpha1.ConditionSuspended, metav1.ConditionTrue)), health{"Suspended", "of Suspended"}},
		"a release without a run":      {release(nil), health{"Healthy", "of Ready"}},
		"a run that goes on":           {release(nil, progressing), health{"Progressing", "of Progressing"}},
		"a run that waits for data":    {release(waits(rollout.WaitData), progressing), health{"Progressing", "of the wait"}},
		"a run that waits for a yes":   {release(waits(rollout.WaitApproval), progressing), health{"Suspended", "of the wait"}},
		"a run that a person paused":   {release(waits(rollout.WaitPaused), progressing), health{"Suspended", "of the wait"}},
		"a run that waits for a start": {release(waits(rollout.WaitStart), progressing), health{"Suspended", "of the wait"}},
		"a run that waits for a step":  {release(waits(rollout.WaitAdvance), progressing), health{"Suspended", "of the wait"}},
		"a stage that failed":          {release(waits(rollout.WaitFailed), progressing), health{"Degraded", "of the wait"}},
		"both variations fail":         {release(waits(rollout.WaitBothBad), progressing), health{"Degraded", "of the wait"}},
		"a canary that was refused":    {release(waits(rollout.WaitRevision)), health{"Degraded", "of the wait"}},
		"a spec that is refused":       {release(waits(rollout.WaitInvalid)), health{"Degraded", "of the wait"}},
		"a work that was refused":      {release(waits(rollout.WaitRefusedWork), progressing), health{"Degraded", "of the wait"}},
		"a requester without trust":    {release(waits(rollout.WaitTrust)), health{"Degraded", "of the wait"}},
		"a kind without a status":      {&v1alpha1.RolloutStrategy{TypeMeta: metav1.TypeMeta{Kind: "RolloutStrategy"}}, health{"Healthy", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runHealth(t, script, tc.object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
