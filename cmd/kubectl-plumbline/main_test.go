// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun_AnswersByTheNameItIsCalled(t *testing.T) {
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"the plugin":                        {args: []string{"/usr/bin/kubectl-plumbline", "version", "--client"}, want: "Client Version: "},
		"the plugin, mistaken":              {args: []string{"kubectl-plumbline", "nope"}, code: 1},
		"completion, by its link":           {args: []string{"/usr/bin/kubectl_complete-plumbline", "hash", "--algorithm", "p"}, want: "pl1\npl2\n"},
		"completion of a command, likewise": {args: []string{"kubectl_complete-plumbline", "blam"}, want: "blame\t"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := run(t.Context(), tc.args, strings.NewReader(""), &out, &errOut)
			if code != tc.code || !strings.HasPrefix(out.String(), tc.want) {
				t.Errorf("%q gave %d, %q, %q", tc.args, code, out.String(), errOut.String())
			}
		})
	}
}
