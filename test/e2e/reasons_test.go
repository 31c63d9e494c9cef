// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reached says, of each reason of a condition or an event, which test on a real
// API server or a real node reaches it, as folder and name.
func reached() map[string]string {
	return map[string]string{
		"EventEphemeralDataLost":     "e2e liveEphemerally",
		"EventReinitialized":         "e2e losesItsVolume",
		"EventSecretLost":            "integration TestASecretThatIsLostIsTold",
		"ReasonAsExpected":           "e2e TestAStatusFollowsADatabase",
		"ReasonAvailable":            "e2e TestAStatusFollowsADatabase",
		"ReasonConfigRefused":        "integration TestAConfigurationThatTheServerRefusesIsTold",
		"ReasonConflict":             "integration TestASecondDatabaseWithTheSameStemWaits",
		"ReasonCrashLooping":         "e2e TestAStatusSaysWhatIsWrong",
		"ReasonCreating":             "e2e TestAStatusFollowsADatabase",
		"ReasonDataLost":             "e2e losesItsVolume",
		"ReasonDataRefused":          "e2e changesVersion",
		"ReasonEngineNotResponding":  "e2e TestAServerThatHangsIsTold",
		"ReasonExpansionRefused":     "e2e TestAClassThatCantGrowIsTold",
		"ReasonEphemeralStorage":     "e2e TestAStatusFollowsADatabase",
		"ReasonImagePullFailed":      "e2e TestAStatusSaysWhatIsWrong",
		"ReasonInvalidSpec":          "integration TestASpecThatCantBeRenderedChangesNothingAndHealsWithTheSpec",
		"ReasonNotEncrypted":         "e2e TestAStatusFollowsADatabase",
		"ReasonPasswordRefused":      "e2e isRefusedAPassword",
		"ReasonPodRefused":           "integration TestAPodThatIsRefusedIsTold",
		"ReasonPodUnschedulable":     "e2e TestAStatusSaysWhatIsWrong",
		"ReasonPrimaryUnreachable":   "e2e TestAnUnreachablePrimaryIsTold",
		"ReasonQuorumLost":           "e2e TestAQuorumThatIsLostIsTold",
		"ReasonReplicaBehind":        "e2e TestASwitchoverWaitsForAReplica",
		"ReasonSyncNotEstablished":   "e2e TestAFirstMemberThatIsAwayIsTold",
		"ReasonSwitchoverWaiting":    "e2e TestASwitchoverWaitsForAReplica",
		"ReasonRetainedDataMismatch": "integration TestAClaimThatWasLeftBehindIsAdoptedOnlyIfItFits",
		"ReasonRolling":              "e2e TestAStatusFollowsADatabase",
		"ReasonSecretMissing":        "integration TestASecretWithoutAPasswordIsNotOverwritten",
		"ReasonSecretNotLabelled":    "integration TestTheUsersOwnSecretIsFollowed",
		"ReasonShutDown":             "e2e isShutDown",
		"ReasonSuspended":            "integration TestNothingIsChangedWhileSuspended",
		"ReasonStepRefused":          "integration TestAStepThatTheAPIServerRefusesIsToldAndTriedAgain",
		"ReasonTemplateUnknown":      "integration TestAWorkloadOfANewerOperatorIsLeftAsItIs",
		"ReasonTopologyUnreadable":   "integration TestATopologyThatCantBeReadChangesNothing",
		"ReasonUpToDate":             "e2e TestAStatusFollowsADatabase",
		"ReasonVolumeGrowing":        "e2e TestAVolumeThatIsBeingGrownIsTold",
		"ReasonVolumePending":        "e2e TestAStatusSaysWhatIsWrong",
		"ReasonWaitingForMember":     "e2e TestAStatusFollowsADatabase",
	}
}

// TestEachReasonIsReached needs no cluster: it holds the list to the constants,
// and to the tests that it names.
func TestEachReasonIsReached(t *testing.T) {
	declared := map[string]bool{}
	for _, file := range parse(t, filepath.Join("..", "..", "pkg", "apis", "coolops", "v1alpha1", "conditions.go")) {
		maps.Copy(declared, constants(file))
	}
	mentions := map[string]map[string]bool{}
	for _, folder := range []string{"e2e", "integration"} {
		for _, file := range parse(t, filepath.Join("..", folder, "*_test.go")) {
			addMentions(mentions, folder, file)
		}
	}
	list := reached()
	for name := range declared {
		if list[name] == "" {
			t.Errorf("%s is declared, and reached by no test that is named here", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch {
		case !declared[name]:
			t.Errorf("%s isn't declared", name)
		case mentions[list[name]] == nil:
			t.Errorf("%s: there is no test %s", name, list[name])
		case !mentions[list[name]][name]:
			t.Errorf("%s: the test %s doesn't look for it", name, list[name])
		}
	}
}

func parse(t *testing.T, pattern string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file is %s: %v", pattern, err)
	}
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// constants returns the names of a file's reasons.
func constants(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, declaration := range file.Decls {
		general, isGeneral := declaration.(*ast.GenDecl)
		if !isGeneral || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value, isValue := spec.(*ast.ValueSpec)
			if !isValue {
				continue
			}
			for _, name := range value.Names {
				if strings.HasPrefix(name.Name, "Reason") || strings.HasPrefix(name.Name, "Event") {
					names[name.Name] = true
				}
			}
		}
	}
	return names
}

// addMentions notes, by folder and function, which names of the API a file's
// functions refer to.
func addMentions(mentions map[string]map[string]bool, folder string, file *ast.File) {
	for _, declaration := range file.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		if !isFunction || function.Body == nil {
			continue
		}
		names := map[string]bool{}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			selector, isSelector := node.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if from, isName := selector.X.(*ast.Ident); isName && from.Name == "v1alpha1" {
				names[selector.Sel.Name] = true
			}
			return true
		})
		mentions[folder+" "+function.Name.Name] = names
	}
}
