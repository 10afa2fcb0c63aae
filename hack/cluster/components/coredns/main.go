// SPDX-License-Identifier: Apache-2.0

// Command coredns is the cluster's DNS server with the few plugins that a
// cluster without a way out needs: there is no forward plugin, so a name from
// outside fails at once instead of timing out.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
