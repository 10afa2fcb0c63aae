// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"

	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
)

// Apply makes the table be what is wanted, whatever it was. After an error it is as
// before; [ErrNotPermitted] and [ErrNotSupported] are told apart. The context's
// deadline bounds the wait for the kernel.
func Apply(ctx context.Context, want redirect.Ruleset) error {
	conn, err := open(ctx)
	if err != nil {
		return failed("setting the rules", err)
	}
	table := &nftables.Table{Name: redirect.Table, Family: nftables.TableFamilyINet}
	// What does not exist cannot be deleted, so it is added first.
	conn.AddTable(table)
	conn.DelTable(table)
	conn.AddTable(table)
	for _, c := range want.Chains {
		if c.Hook != redirect.OutputNAT {
			return fmt.Errorf("setting the rules: the chain %s has the hook %q, want %q", c.Name, c.Hook, redirect.OutputNAT)
		}
		chain := conn.AddChain(outputNAT(table, c.Name))
		for _, r := range c.Rules {
			exprs, err := encode(r)
			if err != nil {
				return fmt.Errorf("setting the rules: %w", err)
			}
			conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
		}
	}
	if err := conn.Flush(); err != nil {
		return failed("setting the rules", err)
	}
	return nil
}

// Read is what the table has, and whether it exists. Rules that are not ours are told
// as such. Sets and other objects without a rule do nothing and are not read.
func Read(ctx context.Context) (redirect.Ruleset, bool, error) {
	conn, err := open(ctx)
	if err != nil {
		return redirect.Ruleset{}, false, failed("reading the rules", err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return redirect.Ruleset{}, false, failed("reading the rules", err)
	}
	i := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == redirect.Table })
	if i < 0 {
		return redirect.Ruleset{}, false, nil
	}
	chains, err := readChains(conn)
	if err != nil {
		return redirect.Ruleset{}, false, failed("reading the rules", err)
	}
	return redirect.Ruleset{Chains: chains, Flagged: tables[i].Flags != 0}, true, nil
}

func readChains(conn *nftables.Conn) ([]redirect.Chain, error) {
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	var out []redirect.Chain
	for _, c := range chains {
		if c.Table.Name != redirect.Table {
			continue
		}
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			return nil, err
		}
		chain := redirect.Chain{Name: c.Name, Hook: hook(c)}
		for _, r := range rules {
			chain.Rules = append(chain.Rules, decode(r.Exprs))
		}
		out = append(out, chain)
	}
	return out, nil
}

// receiveBuffer has room for an answer to each rule of the largest set.
const receiveBuffer = 1 << 20

// open asks the kernel something small first: without nf_tables it answers a whole
// transaction with one error, and the library waits for one answer to each part.
func open(ctx context.Context) (*nftables.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		if deadline, ok := ctx.Deadline(); ok {
			if err := c.SetDeadline(deadline); err != nil {
				return err
			}
		}
		return c.SetReadBuffer(receiveBuffer)
	}))
	if err != nil {
		return nil, err
	}
	_, err = conn.ListTablesOfFamily(nftables.TableFamilyINet)
	return conn, err
}

func outputNAT(table *nftables.Table, name string) *nftables.Chain {
	return &nftables.Chain{
		Table: table, Name: name,
		Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
		Policy: new(nftables.ChainPolicyAccept),
	}
}

// hook is that of ours, or says what the kernel has.
func hook(c *nftables.Chain) redirect.Hook {
	if c.Hooknum == nil || c.Priority == nil || c.Policy == nil {
		return ""
	}
	if c.Type == nftables.ChainTypeNAT && *c.Hooknum == *nftables.ChainHookOutput &&
		*c.Priority == *nftables.ChainPriorityNATDest && *c.Policy == nftables.ChainPolicyAccept {
		return redirect.OutputNAT
	}
	return redirect.Hook(fmt.Sprintf("# of another owner: type %s hook %d priority %d policy %d", c.Type, *c.Hooknum, *c.Priority, *c.Policy))
}
