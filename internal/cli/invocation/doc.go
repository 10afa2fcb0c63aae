// SPDX-License-Identifier: Apache-2.0

// Package invocation holds the values that the commands of the plugin share in one run: the streams,
// the clock, the flags of kubectl and the connection to a cluster ([Invocation], [Cluster]).
//
// It also has the conventions of kubectl that each command keeps:
//
//   - errors and exit codes ([UsageErrorf], [ExitError], [Report]);
//   - output: tables, objects in the formats of kubectl get, and text for people that no
//     terminal obeys ([Invocation.PrintTable], [ListOutput], [Description]);
//   - flags that several commands have, questions to the user, and completion.
//
// The package builds the plugin's own command from the commands of the verbs
// ([Invocation.NewRoot]), so that a test runs one verb as the whole plugin does.
package invocation
