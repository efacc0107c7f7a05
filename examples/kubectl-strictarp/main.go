// Kubectl-strictarp is a kubectl plugin that says who answers ARP for the
// LoadBalancer IPs (VIPs) of a bare-metal cluster, who should, and how to mend it.
//
//	kubectl strictarp check [SUBJECT...]        judge a running cluster
//	kubectl strictarp evaluate BUNDLE...        judge facts that were collected before
//	kubectl strictarp explain RULE|VIP|NAMESPACE/SERVICE
//	kubectl strictarp who VIP                   who should answer, who says so, who does
//	kubectl strictarp fix [KEY...]              show what mends it; --apply does it
//	kubectl strictarp verify VIP --soak 60s     ask the wire for a while
//	kubectl strictarp bundle DIR                collect facts for evaluate
//
// A SUBJECT is a VIP, a node's name or a Service as namespace/name. A BUNDLE is a
// folder, a facts.json, or - for such JSON on standard input.
//
// # Exit codes
//
// The same for every output format: 0 nothing at or above --fail-on was found,
// which is error unless it says warning; 1 something was; 2 it could not be done.
// What cannot be decided for want of facts is no finding in this sense: the output
// says that it is there. Of fix, 1 means that there is something to do, or that
// what was done did not help; of explain and bundle there is no 1.
//
// # Output
//
// With -o json and -o yaml, check, evaluate and verify print this document; fields
// are added only together with a new version, and all of them are always there,
// save "at" where no time is known. The order of findings is fixed.
//
//	{
//	  "version": 1,
//	  "findings": [{
//	    "key": "rule|subject|vantage",   names the finding for as long as it lasts
//	    "rule": "multiple-responders",   see explain
//	    "severity": "error",             error, warning, info or unknown
//	    "node": "",                      the node at fault, if one is
//	    "subject": "10.0.3.20",          a VIP, a node, or an object as namespace/name
//	    "vantage": "lb1",                where it was seen from, if that matters
//	    "message": "...",                a sentence
//	    "evidence": [{"observed": "...", "source": "...", "at": "2026-01-02T15:04:05Z"}],
//	    "causes": ["key"],               findings that explain this one
//	    "remedies": [{                   best first
//	      "summary": "...",
//	      "text": ["strictARP: true"],   one line a step: a setting or a command
//	      "undo": ["strictARP: false"]
//	    }],
//	    "avoid": [{"step": "...", "why": "..."}]   looks like a remedy and does harm
//	  }],
//	  "missing": [{"what": "...", "where": "...", "err": "...", "collect": "..."}],
//	  "summary": {
//	    "errors": 1, "warnings": 0, "infos": 0, "unknowns": 0,
//	    "roots": ["key"]                 findings to begin with: none explains them
//	  }
//	}
//
// Who prints the same with "vip", "expected", "reported" and "answers" beside it; fix
// the plan, its text, diffs and, once applied, the report; explain the rule, or the
// elections, as the library's packages write them.
//
// With -o name they print the keys. Characters that could deceive a terminal are
// escaped in every format; in JSON and YAML nothing is lost by that.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup; else it is that the connection to a host is lost
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], thisWorld()))
}
