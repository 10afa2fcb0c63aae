// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/test/harness/edgeagent"
	"github.com/plumbline-dev/plumbline/test/harness/haproxy"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// program is a HAProxy, whose worker stays over the steps of a split.
var program = edgeagent.Program{
	Kind: "haproxy", User: "user.cfg", Rules: connector.ConfigFile, Choose: arm,
	Configure: func(address, _ string) string { return configure(address, "") },
	Flags: func(a *edgeagent.Agent) []string {
		_, port, err := net.SplitHostPort(a.Address) // tells the sockets of tests apart that run at the same time
		must(a, err)
		return []string{"--instance=" + port}
	},
	Command: func(a *edgeagent.Agent) []string { return []string{haproxy.Binary(a), "-f", a.Path("user.cfg")} },
	Broken:  "  bnd :1\n", Refusal: "user.cfg:9",
	FindWorker: func(a *edgeagent.Agent) (int, error) {
		present, _, err := runtimeapi.Client{Socket: filepath.Join(a.Folder, "master.sock")}.Workers(a.Context())
		if err == nil && len(present) != 1 {
			err = fmt.Errorf("there are workers %v", present)
		}
		if err != nil {
			return 0, err
		}
		return present[0], nil
	},
}

func TestAnAgentAcknowledgesStepsThatAreProven(t *testing.T) { edgeagent.CheckProvenSteps(t, program) }

func TestAnAgentHoldsWhileReplicasAreAway(t *testing.T) { edgeagent.CheckHolding(t, program) }

func TestAnAgentRefusesInTheWordsOfHAProxy(t *testing.T) { edgeagent.CheckRefusal(t, program) }

func TestAnAgentNamesTheWorkerThatIsLate(t *testing.T) { edgeagent.CheckLateWorker(t, program) }

func TestAnAgentThatIsStoppedAcknowledgesNothing(t *testing.T) {
	edgeagent.CheckStoppedAgent(t, program)
}

func TestAnAgentThatIsKilledCarriesOn(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckKills(t, program)
}

func TestAnAgentWithoutAStoreFollows(t *testing.T) { edgeagent.CheckDamagedStore(t, program) }

func TestCountsOfAnAgentAreThoseOfTheClients(t *testing.T) { edgeagent.CheckCounts(t, program) }

func TestAnAgentRampsWithoutALoss(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckRamp(t, program)
}

func TestTheGuideOfHAProxy(t *testing.T) {
	edgeagent.CheckGuide(t, program, func(configuration, address, _ string) string {
		return strings.Replace(configuration, "bind :8080", "bind "+address, 1)
	})
}

// hosts sends the requests of three Services to their backends.
func hosts(address, _ string) string {
	return strings.Replace(configure(address, ""), "  use_backend plb_shop_web\n", `  use_backend plb_shop_web if { hdr(host) web.shop }
  use_backend plb_shop_pay if { hdr(host) pay.shop }
  use_backend plb_bank_web if { hdr(host) web.bank }
`, 1)
}

func TestAgentsOfHAProxyKeepTheContractOfRouters(t *testing.T) {
	rotation.Share(t, 6)
	edgeagent.Conform(t, program, hosts)
}
