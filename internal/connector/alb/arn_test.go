// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	region, account = "eu-west-1", "123456789012"
	prefix          = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:"
	ruleARN         = prefix + "listener-rule/app/edge/50dc6c495c0c9188/f2f7dc8efc522ab2/9683b2d02a6cabee"
	listenerARN     = prefix + "listener/app/edge/50dc6c495c0c9188/f2f7dc8efc522ab2"
	balancerARN     = prefix + "loadbalancer/app/edge/50dc6c495c0c9188"
)

func groupARN(variation string) string {
	return prefix + "targetgroup/" + variation + "/73e2d6bc24d8a067"
}

func groupsOf(variations ...string) Groups {
	groups := Groups{}
	for _, v := range variations {
		groups[v] = groupARN(v)
	}
	return groups
}

func TestAnARNThatTheRouterMayNotUseIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Reason // empty for an ARN that is taken
	}{
		"a rule":                              {ruleARN, ""},
		"a listener":                          {listenerARN, ""},
		"another partition":                   {"arn:aws-cn:elasticloadbalancing:eu-west-1:123456789012:listener/app/edge/1/2", ""},
		"another region":                      {"arn:aws:elasticloadbalancing:us-east-1:123456789012:listener/app/edge/1/2", ReasonRegion},
		"another account":                     {"arn:aws:elasticloadbalancing:eu-west-1:999999999999:listener/app/edge/1/2", ReasonAccount},
		"a balancer":                          {balancerARN, ReasonARN},
		"a target group":                      {groupARN("stable"), ReasonARN},
		"a listener of a network balancer":    {prefix + "listener/net/edge/1/2", ReasonARN},
		"a rule without its own ID":           {prefix + "listener-rule/app/edge/1/2", ReasonARN},
		"a rule with an empty part":           {prefix + "listener-rule/app/edge//2/3", ReasonARN},
		"a listener of another service":       {"arn:aws:ec2:eu-west-1:123456789012:listener/app/edge/1/2", ReasonARN},
		"a text that is no ARN":               {"listener/app/edge/1/2", ReasonARN},
		"no text":                             {"", ReasonARN},
		"a text of an ARN without a resource": {prefix, ReasonARN},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Route: tc.text, Region: region, Account: account, Groups: groupsOf("stable")})
			checkReason(t, err, tc.want)
		})
	}
}

func TestATargetGroupOfAnotherRegionIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		group string
		want  Reason
	}{
		"the same region": {groupARN("canary"), ""},
		"another region":  {"arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/canary/1", ReasonRegion},
		"another account": {"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/canary/1", ReasonAccount},
		"a rule":          {ruleARN, ReasonARN},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Route: ruleARN, Region: region, Account: account, Groups: Groups{"canary": tc.group}})
			checkReason(t, err, tc.want)
		})
	}
}

// checkReason demands a refusal by a reason; no error where the reason is empty.
func checkReason(t *testing.T, err error, want Reason) {
	t.Helper()
	var refusal *RefusalError
	if want == "" && err != nil || want != "" && (!errors.As(err, &refusal) || refusal.Reason != want) {
		t.Errorf("got %v, want the reason %q", err, want)
	}
}

func TestTheNamesThatFollowFromAnARN(t *testing.T) {
	rule, err := parseResource(ruleARN, region, account, kindRule)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{balancerARN, listenerARN, ruleARN}, rule.listOwners()); d != "" {
		t.Errorf("the owners (-want +got):\n%s", d)
	}
	got := []string{rule.String(), rule.balancerDimension(), groupDimension(groupARN("stable"))}
	want := []string{"listener-rule app/edge/50dc6c495c0c9188/f2f7dc8efc522ab2/9683b2d02a6cabee", "app/edge/50dc6c495c0c9188", "targetgroup/stable/73e2d6bc24d8a067"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the names (-want +got):\n%s", d)
	}
}
