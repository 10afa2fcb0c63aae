// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	starts = `{"Action":"start","Package":"p"}`
	says   = `{"Action":"output","Package":"p","Test":"TestA","Output":"trouble\n"}`
	okay   = `{"Action":"output","Package":"p","Output":"ok  \tp\t1.000s\n"}`
	passes = `{"Action":"pass","Package":"p","Elapsed":1}`
)

func TestCollector(t *testing.T) {
	type outcome struct {
		Printed string
		Failed  bool
	}
	tests := map[string]struct {
		events []string
		want   outcome
	}{
		"a package that passes":                  {[]string{starts, okay, passes}, outcome{"ok  \tp\t1.000s\n", false}},
		"a package that passes without its line": {[]string{starts, passes}, outcome{"ok  \tp\t1.000s\n", false}},
		"a package that is tested twice": {
			[]string{starts, okay, passes, starts, okay, passes},
			outcome{"ok  \tp\t1.000s\nok  \tp\t1.000s\n", false},
		},
		"a package that fails without a word": {
			[]string{starts, `{"Action":"fail","Package":"p","Elapsed":2}`},
			outcome{"FAIL\tp\t2.000s\n", true},
		},
		"a test that fails tells it before its package ends": {
			[]string{starts, says, `{"Action":"fail","Package":"p","Test":"TestA"}`, says, okay, passes},
			outcome{"trouble\nok  \tp\t1.000s\n", true},
		},
		"a test that passes tells nothing": {
			[]string{starts, says, `{"Action":"pass","Package":"p","Test":"TestA"}`, okay, passes},
			outcome{"ok  \tp\t1.000s\n", false},
		},
		"events that end within a test": {
			[]string{starts, says},
			outcome{"trouble\nFAIL\tp\t[the events end before the package]\nFAIL\t[no package was tested]\n", true},
		},
		"events that end between two packages are complete": {
			[]string{starts, okay, passes, `{"Action":"start","Package":"q"}`, `{"Action":"skip","Package":"q"}`},
			outcome{"ok  \tp\t1.000s\n", false},
		},
		"half of a line at the end": {
			[]string{starts, okay, `{"Action":"pass","Pack`},
			outcome{"{\"Action\":\"pass\",\"Pack\nok  \tp\t1.000s\nFAIL\tp\t[the events end before the package]\nFAIL\t[no package was tested]\n", true},
		},
		"no event at all":             {nil, outcome{"FAIL\t[no package was tested]\n", true}},
		"a line of the go command":    {[]string{"go: downloading", starts, okay, passes}, outcome{"go: downloading\nok  \tp\t1.000s\n", false}},
		"a build that fails":          {[]string{`{"Action":"build-output","ImportPath":"q","Output":"undefined: x\n"}`, `{"Action":"build-fail","ImportPath":"q"}`, starts, okay, passes}, outcome{"undefined: x\nok  \tp\t1.000s\n", true}},
		"an action that is not known": {[]string{`{"Action":"attr","Package":"p"}`, starts, okay, passes}, outcome{"ok  \tp\t1.000s\n", false}},
		"a test that a package leaves behind is told when the package fails": {
			[]string{starts, says, `{"Action":"output","Package":"p","Output":"FAIL\tp\t1.000s\n"}`, `{"Action":"fail","Package":"p"}`},
			outcome{"trouble\nFAIL\tp\t1.000s\n", true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			input := strings.Join(tc.events, "\n")
			if len(tc.events) > 0 {
				input += "\n"
			}
			r, err := follow(strings.NewReader(input), &out, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, outcome{out.String(), r.failed}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
