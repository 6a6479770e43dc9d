#!/usr/bin/perl
# sinter explain --html: one page that holds all it needs: the graphs drawn, with graphviz and without, the kernels in three languages, a reason on every
# edge between kernels, the numbers of the text. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use List::Util qw(sum);
use FindBin;
use lib $FindBin::Bin;
use Sinter;
$sinter = "$FindBin::Bin/../$sinter" unless $sinter =~ m{^/};
my $has_dot = grep { -x "$_/dot" } split /:/, $ENV{PATH};

sub check_page {
  my ($name, $pattern, $options, $drawn) = @_;
  my $page = "$dir/page.html";
  unlink $page;
  my $said = `$sinter explain tests/patterns/$pattern.snt $options --html -o $page 2>&1`;
  is($?, 0, "$name: written") or diag $said;
  my $html = slurp($page);
  (my $plain = $html) =~ s{http://www\.w3\.org/\S+}{}g;
  unlike($plain, qr{(?:src|href)\s*=\s*["']|https?://|\@import|url\(}, "$name: nothing from elsewhere");
  my ($json) = $html =~ m{<script id="data" type="application/json">(.*?)</script>}s;
  my $data = eval { JSON::PP->new->decode($json // '') };
  ok($data, "$name: the data is JSON") or return diag $@;
  my @kernels = @{$data->{explain}{kernels}};
  (my $untimed = $options) =~ s/ --runs \d+//; # only pages have times
  my $listed = `$sinter explain tests/patterns/$pattern.snt $untimed --json`;
  my $text = decode_json($listed);
  is(scalar @kernels, scalar @{$text->{kernels}}, "$name: the kernels of the text");
  my @without = grep { keys %{$data->{sources}[$_->{kernel}]} != 3 } @kernels;
  is(scalar @without, 0, "$name: each kernel in three languages");
  for my $which (['before', 'b'], ['after', 'a']) {
    my ($graph, $letter) = ($data->{graphs}{$which->[0]}, $which->[1]);
    my @bad = grep { $_->{from} >= @{$graph->{nodes}} || $_->{to} >= @{$graph->{nodes}} } @{$graph->{edges}};
    is(scalar @bad, 0, "$name: edges $which->[0] join nodes");
    next unless $drawn;
    my $nodes = () = $html =~ /<g id="$letter\d+" class="node/g;
    my $edges = () = $html =~ /<g id="${letter}e\d+" class="edge/g;
    is("$nodes nodes, $edges edges", @{$graph->{nodes}} . ' nodes, ' . @{$graph->{edges}} . ' edges', "$name: the drawing $which->[0] has them all");
  }
  my ($nodes, $decisions) = ($data->{graphs}{after}{nodes}, $data->{explain}{decisions});
  my @between = grep { my ($a, $b) = map { $nodes->[$_]{step} } @$_{qw(from to)}; $a >= 0 && $b >= 0 && $a != $b } @{$data->{graphs}{after}{edges}};
  my @dumb = grep { $_->{decision} < 0 || $decisions->[$_->{decision}]{taken} || !length $decisions->[$_->{decision}]{text} } @between;
  is(scalar @dumb, 0, "$name: each of " . @between . ' edges between kernels has its reason');
  return ($data, $said, $html);
}

my ($data) = check_page('graphviz', 'p36_encoder', '--profile dgpu', $has_dot);
ok($has_dot || $data, 'graphviz is not here') unless $has_dot;
# What depends on inputs stands in a line: as many columns as the graph is wide, not as it is long.
SKIP: {
  skip('no graphviz', 1) unless $has_dot;
  open my $out, '>', "$dir/line.snt" or die $!;
  print $out 'graph @line(%v0: f32[8,8]) {', (map { my ($n, $from) = ($_, $_ - 1); "\n %c$n: f32[8,8] = const normal seed=$n scale=1.0\n %d$n = exp %c$n\n %e$n = sqrt %d$n\n %v$n = add %v$from, %e$n" } 1 .. 60), "\n return y=%v60\n}\n";
  close $out;
  my $page = "$dir/page.html";
  `$sinter explain $dir/line.snt --profile dgpu --html -o $page 2>&1`;
  my ($wide, $tall) = slurp($page) =~ /<svg width="(\d+)pt" height="(\d+)pt"/;
  cmp_ok($wide // 1e9, '<', 1000, 'sixty additions of constants are drawn in one line');
}
{
  local $ENV{PATH} = $dir; # no graphviz, no disassembler
  my (undef, $said, $html) = check_page('without graphviz', 'p36_encoder', '--profile dgpu', 0);
  like($said, qr/draws the graph itself/, 'which is said aloud');
  unlike($html, qr/<svg[^>]*xmlns/, 'and leaves the drawing to the page');
}
($data) = check_page('bindings', 'p32_many_inputs', '--profile dgpu --mask bindings=6', $has_dot);
my @reasons = map { $_->{text} } grep { $_->{rule} eq 'bindings' } @{$data->{explain}{decisions}};
ok(@reasons && !(grep { !/would (?:fuse with|be one with|have) \d+ bindings; this device has 6/ } @reasons), 'the counterfactual has its numbers') or diag "@reasons";
($data) = check_page('timed', 'p08_softmax', '--device interp --runs 2', $has_dot);
is(scalar @{$data->{measured}}, scalar @{$data->{explain}{kernels}}, 'with a device each kernel has a time');
# Two steps of one group share what it costs and computes; a batch has the sum of its groups'.
for my $case (['two steps', 2 * 64 * 64 * 4096, 'long', '(%a: f32[64,4096], %b: f32[4096,64])', '%y = matmul %a, %b', 'return y=%y', 2],
              ['a batch', 2 * 2 * 64 ** 3, 'two', '(%a: f32[64,64], %b: f32[64,64], %c: f32[64,64], %d: f32[64,64])', "%y = matmul %a, %b\n%z = matmul %c, %d", 'return y=%y, z=%z', 1]) {
  my ($what, $operations, $name, $takes, $does, $gives, $steps) = @$case;
  open my $out, '>', "$dir/$name.snt" or die $!;
  print $out "graph \@$name$takes {\n$does\n$gives\n}\n";
  close $out;
  my $kernels = decode_json(scalar `$sinter explain $dir/$name.snt --profile dgpu --json`)->{kernels};
  is(@$kernels . ' ' . sum(map { $_->{flops} } @$kernels), "$steps $operations", "$what: operations are counted once");
  cmp_ok(abs($kernels->[0]{est_us} - $kernels->[1]{est_us}), '>', 1, "$what: nor is the time said twice") if $steps == 2;
}
my $refused = `$sinter explain tests/patterns/p08_softmax.snt --html 2>&1`;
ok($? && $refused =~ /-o PAGE/, 'without a place for the page it says what is missing');
# What was decided of a loop's trips names nodes of the loop's body, which are not the graph's.
my @trips = grep { /^  [-+]/ } split /\n/, `$sinter explain tests/fuzz/seeds/launches_of_a_body.snt --profile swiftshader --mask vulkan11-min`;
is(scalar(grep { !/^  . loop\.\d+ -> loop\.\d+: / } @trips), 0, 'launches of a body are told as such') or diag join "\n", @trips;
ok(@trips > 4, 'all of them');
done_testing;
