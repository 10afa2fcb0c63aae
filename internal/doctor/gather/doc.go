// SPDX-License-Identifier: Apache-2.0

// Package gather reads from an API server what package doctor examines.
//
// [Snapshot] reads everything once, as the user of the client configuration,
// and keeps of each failed read why it failed; a missing right is named. Then it
// tries up to three writes as dry runs (probe.go): what only admission can show
// is asked of admission. It stores nothing, needs read rights for the rest, and
// reads replicas' metrics through the API server's pod proxy, because a person's
// machine seldom reaches pods.
package gather
