// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var web = Target{Namespace: "shop", Kind: "Deployment", Name: "web.v2", Pods: []string{"web.v2-5d4f-abcde"}}

func TestFormatMatchers(t *testing.T) {
	tests := map[string]struct {
		matchers []Matcher
		want     []string
		fault    string
	}{
		"none":                           {nil, []string{}, ""},
		"the default":                    {DefaultMatchers, []string{`namespace="shop"`}, ""},
		"each operator":                  {[]Matcher{{"a", Equals, "1"}, {"b", NotEquals, "2"}, {"c", Matches, "3|4"}, {"d", NotMatches, ".*"}}, []string{`a="1"`, `b!="2"`, `c=~"3|4"`, `d!~".*"`}, ""},
		"each placeholder":               {[]Matcher{{"service", Equals, "$(namespace)/$(kind)/$(name)"}}, []string{`service="shop/Deployment/web.v2"`}, ""},
		"a dot of a name is a dot":       {[]Matcher{{"job", Matches, "$(name)-.*"}}, []string{`job=~"web\\.v2-.*"`}, ""},
		"a value that has to be escaped": {[]Matcher{{"a", Equals, "b\"c\\d\ne"}}, []string{`a="b\"c\\d\ne"`}, ""},
		"no value":                       {[]Matcher{{"silenced", Equals, ""}}, []string{`silenced=""`}, ""},
		"an unknown operator":            {[]Matcher{{"a", Equals, "1"}, {"a", "Like", "1"}}, nil, `alerts.matchers[1].operator: "Like" is no operator`},
		"an unknown placeholder":         {[]Matcher{{"a", Equals, "$(pod)"}}, nil, "alerts.matchers[0].value: unknown placeholder $(pod)"},
		"a placeholder that stays open":  {[]Matcher{{"a", Equals, "$(name"}}, nil, "alerts.matchers[0].value: a placeholder $( is not closed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FormatMatchers(tc.matchers, &web)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichAlertsAreAboutATarget(t *testing.T) {
	tests := map[string]struct {
		labels map[string]string
		want   bool
	}{
		"the label of its kind":                   {map[string]string{"namespace": "shop", "deployment": "web.v2"}, true},
		"the label workload":                      {map[string]string{"namespace": "shop", "workload": "web.v2"}, true},
		"the label workload, with its type":       {map[string]string{"namespace": "shop", "workload": "web.v2", "workload_type": "deployment"}, true},
		"the label workload, with another type":   {map[string]string{"namespace": "shop", "workload": "web.v2", "workload_type": "statefulset"}, false},
		"one of its pods":                         {map[string]string{"namespace": "shop", "pod": "web.v2-5d4f-abcde"}, true},
		"a pod whose name begins alike":           {map[string]string{"namespace": "shop", "pod": "web.v2-5d4f-abcdef"}, false},
		"the workload of another namespace":       {map[string]string{"namespace": "shop2", "deployment": "web.v2"}, false},
		"another kind of the same name":           {map[string]string{"namespace": "shop", "statefulset": "web.v2"}, false},
		"the namespace alone":                     {map[string]string{"namespace": "shop"}, false},
		"defect 18: an alert without a namespace": {map[string]string{"deployment": "web.v2"}, false},
		"no label": {nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := web.IsAbout(tc.labels); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
