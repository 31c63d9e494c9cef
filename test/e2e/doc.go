// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator with real databases on real nodes. It needs a
// cluster in which config/install.yaml is applied; make test-e2e makes one.
//
//	go test -tags=e2e ./test/e2e -run TestEngines/redis/durable
//
// finds it by these variables:
//
//	E2E_KUBECONFIG  the administrator's kubeconfig
//	E2E_AUDIT_LOG   the API server's audit log, a JSON object a line
//	E2E_FIGURES     a file that measurements are added to
//	E2E_NEXT_IMAGE  the image of the operator's next build, which a node has
//	E2E_LOCALCLUSTER
//	                the command that cuts the cluster's pods off, as in
//	                "localcluster --name e2e"
//	E2E_FULL        set to lead every engine through its whole life, and not
//	                only the first of them; make e2e-full sets it
//	E2E_ENGINES     names of engines, for the tests that lead them all through
//	                something at once with E2E_FULL: all, unless it is set
//
// The operator has to log as much as it can (DATABASE_MANAGER_V=8), because what
// it logs is searched for passwords. Afterwards, test/e2e/rights compares what
// the operator may do with what it did.
//
// # Scenarios
//
// What users of database operators have run into, and the test at the lowest
// level that shows that it doesn't happen here. Tests are in this package unless
// a folder is named.
//
//	a bad image is reverted                      TestAStatusSaysWhatIsWrong
//	a version that can't open the data           TestEngines/*/durable (changesVersion)
//	children change or go                        TestChildrenAreRestoredUnderARunningDatabase,
//	                                             integration: TestWhatIsOursIsPutBackWhenItIsChanged,
//	                                             TestAChildThatIsDeletedIsMadeAgain
//	delete, and create again                     TestEngines/*/durable (isMadeAgain),
//	                                             integration: TestWhatADatabaseLeavesBehindIsAdoptedByTheNext
//	a Secret is lost                             TestEngines/* (losesItsSecrets),
//	                                             TestASecretThatIsLostWithoutTheOperatorIsMadeAnew,
//	                                             integration: TestASecretThatIsLost…
//	a volume is lost                             TestEngines/*/durable (losesItsVolume)
//	a password is rotated                        TestEngines/* (isRotated)
//	a parameter, live and by restart             TestEngines/* (isTuned)
//	a smaller volume                             integration: TestRefusals
//	a larger volume, on a full disk              TestAFullVolumeGrowsWhileTheServerCrashes
//	a larger volume, of a class that has none    TestAClassThatCantGrowIsTold
//	hands off                                    integration: TestNothingIsChangedWhileSuspended
//	shut down, and back                          TestEngines/*/durable (isShutDown)
//	a quiet restart of the operator              TestDatabasesThatAreReadyCostNothing,
//	                                             integration: TestAtRestThereIsNoRequestAndARestartWritesNothing
//	a quiet upgrade                              TestTheNextBuildTouchesNoDatabase,
//	                                             integration: TestTheCRDOfTheReleaseBeforeIsReplacedUnderDatabasesThatRun
//	idle is idle                                 TestDatabasesThatAreReadyCostNothing,
//	                                             faults: TestAtRestThereIsNoRequest
//	bad specs are refused                        integration: TestRefusals
//	bad specs of former times                    integration: TestOldObjectsThatWouldBeRefusedTodayHarmNobody
//	what belongs to others                       integration: TestAForeignObjectOfAChildsNameIsLeftAloneAndNamed,
//	                                             TestASecondDatabaseWithTheSameStemWaits
//	a sick database is deleted                   TestASickDatabaseCanBeDeleted
//	a namespace is deleted                       TestANamespaceGoesWithItsDatabases
//	deleted while the operator is down           TestADatabaseThatIsDeletedWithoutTheOperatorIsGone
//	a server that hangs                          TestAServerThatHangsIsTold
//	no node, no volume, no image, no start       TestAStatusSaysWhatIsWrong
//	the operator is away                         TestDatabasesGoOnWithoutTheOperator
//	the primary dies                             TestReplicasReplicate
//	an empty ex-primary                          TestAPrimaryThatIsLostIsSucceeded
//	scale out is not empty, and scale in         TestReplicasReplicate
//	too few members, or a primary out of reach   TestAQuorumThatIsLostIsTold,
//	                                             TestAnUnreachablePrimaryIsTold
//	another primary is asked for                 TestAPrimaryThatIsLostIsSucceeded,
//	                                             TestASwitchoverWaitsForAReplica
//	all of it at random                          TestChaos (make chaos)
//	scale subresource                            integration: TestScaleSubresource,
//	                                             TestReapplyWithoutReplicasKeepsWhatAnAutoscalerSet
//	two operators, one leader                    TestAnotherOperatorTakesOverFromALeaderThatDies,
//	                                             faults: TestALeaderThatIs…
//	one namespace only, by Roles only            TestAnOperatorOfOneNamespaceServesThatOneAlone,
//	                                             integration: TestAnOperatorOfOneNamespaceNeedsRolesOnly
//	a claim loses its labels                     TestChildrenAreRestoredUnderARunningDatabase,
//	                                             integration: TestALabelThatIsTakenOffAClaimIsPutBack
//	an operator that is killed at any write      TestAnOperatorMayDieAfterItsWrites,
//	                                             faults: TestOneFaultAtEachWrite
//	passwords outside of Secrets                 TestEngines/* (keepsItsSecrets)
//	who reaches a database                       TestOnlyWhoIsAdmittedReachesADatabase
//	rights                                       test/e2e/rights
package e2e
