// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// block is a fenced block of a page, with its language.
var block = regexp.MustCompile("(?ms)^( *)```(yaml|shell|text)\n(.*?)^ *```$")

// kubectl runs a command line of a shell with kubectl on its path.
func kubectl(t *testing.T, kubeconfig, command, input string) string {
	t.Helper()
	assets, err := apiserver.Assets()
	must(t, err)
	shell := child.Bind(exec.CommandContext(t.Context(), "sh", "-ec", command))
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+assets+":"+os.Getenv("PATH"))
	shell.Stdin = strings.NewReader(input)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// The blocks of the guide are carried out in their order, each command as it stands there.
func TestTheGuideWorksAsItIsWritten(t *testing.T) {
	d := &delivery{T: t, namespace: tenant, edge: &edges{refuses: map[string]string{}}, line: &line{Client: xds}}
	d.makeApplication()
	d.runGateway()
	d.lead()
	page, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "docs", "guides", "gateway-api.md"))
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, apiserver.WriteKubeconfig(kubeconfig, config, apiserver.Impersonating(config, "admin", "system:masters")))
	t.Cleanup(func() {
		router := &v1alpha1.TrafficRouter{}
		router.Name = "gateways"
		must(t, client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), router)))
	})
	said, ran := "", 0
	for _, found := range block.FindAllStringSubmatch(string(page), -1) {
		body := strings.ReplaceAll("\n"+found[3], "\n"+found[1], "\n")
		switch found[2] {
		case "yaml":
			if strings.Contains(body, "\nkind: ") {
				kubectl(t, kubeconfig, "kubectl apply -f -", body)
			}
		case "shell":
			said = kubectl(t, kubeconfig, body, "")
			ran++
		case "text":
			if !strings.HasSuffix(strings.TrimSpace(said), strings.TrimSpace(body)) {
				t.Errorf("the command says %q, and the guide %q", said, body)
			}
		}
	}
	if ran != 4 {
		t.Errorf("%d blocks of commands ran", ran)
	}
}
