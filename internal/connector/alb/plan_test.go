// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// fillFields gives each exported field below a value a value of its own.
func fillFields(v reflect.Value, made *int) {
	*made++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem(), made)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillFields(v.Field(i), made)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillFields(v.Index(0), made)
		fillFields(v.Index(1), made)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", *made)), reflect.ValueOf(fmt.Sprint("value", *made)))
	case reflect.String:
		v.SetString(fmt.Sprint("text", *made))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*made))
	default:
		panic(fmt.Sprintf("the kind %s of a field is unknown", v.Kind()))
	}
}

// fullRoute has an action of each kind that a route may have before it forwards, with each field of the API.
func fullRoute() *Route {
	var actions []types.Action
	made := 0
	for _, kind := range []types.ActionTypeEnum{types.ActionTypeEnumJwtValidation, types.ActionTypeEnumAuthenticateOidc, types.ActionTypeEnumAuthenticateCognito, types.ActionTypeEnumForward} {
		var action types.Action
		fillFields(reflect.ValueOf(&action).Elem(), &made)
		action.Type = kind
		actions = append(actions, action)
	}
	forward := actions[3].ForwardConfig
	forward.TargetGroupStickinessConfig.Enabled = aws.Bool(false)
	for i, variation := range []string{"stable", "canary"} {
		forward.TargetGroups[i].TargetGroupArn = aws.String(groupARN(variation))
	}
	return &Route{Name: "the rule", Actions: actions}
}

func TestAPlanChangesWeightsAlone(t *testing.T) {
	before, untouched := fullRoute(), fullRoute()
	actions, err := Plan(before, Weights{groupARN("stable"): 9, groupARN("canary"): 1})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, untouched) {
		t.Error("the plan changes the route that was read")
	}
	want := fullRoute().Actions
	want[3].ForwardConfig.TargetGroups[0].Weight, want[3].ForwardConfig.TargetGroups[1].Weight = aws.Int32(9), aws.Int32(1)
	for i := range want { // AWS tells no secret, so it has to keep the one that it has
		want[i].AuthenticateOidcConfig.UseExistingClientSecret = aws.Bool(true)
	}
	if !reflect.DeepEqual(want, actions) {
		t.Errorf("the actions are not those that were read with other weights")
	}
	if again, err := Plan(&Route{Actions: actions}, Weights{groupARN("stable"): 9, groupARN("canary"): 1}); again != nil || err != nil {
		t.Errorf("the plan for a route with the weights is %v (%v)", again, err)
	}
}

func TestTheSecretOfAnActionThatAuthenticatesIsKept(t *testing.T) {
	route := fullRoute()
	route.Actions[1].AuthenticateOidcConfig.UseExistingClientSecret = nil
	actions, err := Plan(route, Weights{groupARN("stable"): 9, groupARN("canary"): 1})
	if err != nil {
		t.Fatal(err)
	}
	if !aws.ToBool(actions[1].AuthenticateOidcConfig.UseExistingClientSecret) || route.Actions[1].AuthenticateOidcConfig.UseExistingClientSecret != nil {
		t.Error("a write does not keep the secret, or changes the route that was read")
	}
	if err := compareKept(route, &Route{Actions: actions}); err != nil {
		t.Errorf("the mark of the secret counts as a change: %v", err)
	}
}

// Each change of one field of an action between the read and the answer is noticed.
func TestAnAnswerWithOtherFieldsIsNoticed(t *testing.T) {
	changes := map[string]func(*Route){
		"another rule":           func(r *Route) { r.rest = types.Rule{Priority: aws.String("11")} },
		"one action more":        func(r *Route) { r.Actions = append(r.Actions, types.Action{}) },
		"another order":          func(r *Route) { r.Actions[3].Order = aws.Int32(99) },
		"stickiness":             func(r *Route) { r.Actions[3].ForwardConfig.TargetGroupStickinessConfig.Enabled = aws.Bool(true) },
		"another duration":       func(r *Route) { r.Actions[3].ForwardConfig.TargetGroupStickinessConfig.DurationSeconds = aws.Int32(1) },
		"another target group":   func(r *Route) { r.Actions[3].ForwardConfig.TargetGroups[0].TargetGroupArn = aws.String("other") },
		"one target group less":  func(r *Route) { f := r.Actions[3].ForwardConfig; f.TargetGroups = f.TargetGroups[:1] },
		"another user pool":      func(r *Route) { r.Actions[2].AuthenticateCognitoConfig.UserPoolArn = aws.String("other") },
		"another issuer":         func(r *Route) { r.Actions[1].AuthenticateOidcConfig.Issuer = aws.String("other") },
		"no action that forward": func(r *Route) { r.Actions = r.Actions[:3] },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			after := fullRoute()
			change(after)
			if err := compareKept(fullRoute(), after); err == nil {
				t.Error("the change is not noticed")
			}
		})
	}
	same := fullRoute()
	same.Actions[3].ForwardConfig.TargetGroups[0].Weight = aws.Int32(77)
	if err := compareKept(fullRoute(), same); err != nil {
		t.Errorf("another weight counts as a change: %v", err)
	}
}

func TestARouteThatCannotCarryTheWeightsIsRefused(t *testing.T) {
	forward := func(r *Route) *types.ForwardActionConfig { return r.Actions[len(r.Actions)-1].ForwardConfig }
	for name, tc := range map[string]struct {
		change func(*Route)
		want   Reason
	}{
		"a rule that fits":                  {func(*Route) {}, ""},
		"the default rule":                  {func(r *Route) { r.IsDefaultRule = true }, ReasonDefaultRule},
		"stickiness of target groups":       {func(r *Route) { forward(r).TargetGroupStickinessConfig.Enabled = aws.Bool(true) }, ReasonStickiness},
		"no statement about stickiness":     {func(r *Route) { forward(r).TargetGroupStickinessConfig = nil }, ""},
		"a target group of no variation":    {func(r *Route) { forward(r).TargetGroups[0].TargetGroupArn = aws.String("other") }, ReasonTargetGroupsDiffer},
		"one target group less":             {func(r *Route) { forward(r).TargetGroups = forward(r).TargetGroups[:1] }, ReasonTargetGroupsDiffer},
		"a target group twice":              {func(r *Route) { forward(r).TargetGroups[0] = forward(r).TargetGroups[1] }, ReasonTargetGroupsDiffer},
		"a target group without a list":     {func(r *Route) { r.Actions[len(r.Actions)-1].ForwardConfig = nil }, ReasonActionUnsupported},
		"a redirect":                        {func(r *Route) { r.Actions[3].Type = types.ActionTypeEnumRedirect }, ReasonActionUnsupported},
		"a fixed response":                  {func(r *Route) { r.Actions[3].Type = types.ActionTypeEnumFixedResponse }, ReasonActionUnsupported},
		"an action of an unknown type":      {func(r *Route) { r.Actions[0].Type = "validate-everything" }, ReasonActionUnsupported},
		"no action":                         {func(r *Route) { r.Actions = nil }, ReasonActionUnsupported},
		"a target group without any weight": {func(r *Route) { forward(r).TargetGroups[0].Weight = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			route := fullRoute()
			tc.change(route)
			actions, err := Plan(route, Weights{groupARN("stable"): 9, groupARN("canary"): 1})
			checkReason(t, err, tc.want)
			if (actions == nil) != (tc.want != "") {
				t.Errorf("the plan has %d actions", len(actions))
			}
		})
	}
}

func TestARouteOfTheControllerIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		key  string
		want Reason
	}{
		"a tag of a person":            {"team", ""},
		"the cluster":                  {"elbv2.k8s.aws/cluster", ReasonRouteOwned},
		"the cluster, in old releases": {"ingress.k8s.aws/cluster", ReasonRouteOwned},
		"an Ingress":                   {"ingress.k8s.aws/stack", ReasonRouteOwned},
		"a Service":                    {"service.k8s.aws/resource", ReasonRouteOwned},
		"a Gateway":                    {"gateway.k8s.aws/stack", ReasonRouteOwned},
		"a tag that looks like it":     {"elbv2.k8s.aws.example.com/cluster", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tags := []types.TagDescription{{}, {Tags: []types.Tag{{Key: aws.String("Name")}, {Key: aws.String(tc.key), Value: aws.String("prod")}}}}
			checkReason(t, checkOwner("the rule", tags), tc.want)
		})
	}
}
