#!/usr/bin/perl
# Whole networks without rewrites, as graph text made here, weights as inputs: how many kernels they become on each class, and how few are promised.
# Encoder of MiniLM (6 layers, 12 heads of 32), ResNet-50, MobileNet-v2, a post-process, SwiGLU, attention. Nothing runs. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan skip_all => "$sinter is not built" unless -x $sinter;

# ---- graph text: ports and lines gather, values are numbered ----
my (@ports, @lines, $number);
sub begin { @ports = @lines = (); $number = 0 }
sub port { my ($shape) = @_; my $name = 'p' . @ports; push @ports, "%$name: f32[" . join(',', @$shape) . ']'; return "%$name" }
sub op { my ($text) = @_; my $name = '%v' . $number++; push @lines, "  $name = $text"; return $name }
sub spread { my ($value, $axis, @shape) = @_; return op("broadcast $value, axes=[$axis], shape=[" . join(',', @shape) . ']') }
sub graph { my ($name, %results) = @_; return "graph \@$name(" . join(', ', @ports) . ") {\n" . join("\n", @lines) . "\n  return " . join(', ', map { "$_=$results{$_}" } sort keys %results) . "\n}\n" }

# ---- layers ----
sub norm { my ($x, $channels, @shape) = @_; my $y = op("mul $x, " . spread(port([$channels]), 1, @shape)); return op("add $y, " . spread(port([$channels]), 1, @shape)) }
sub conv {    # with the scale and shift of a batch norm; [value, channels, extent]
  my ($in, $to, $size, $stride, $groups) = @_;
  my ($x, $from, $extent) = @$in;
  my $pad = int($size / 2);
  my $out = int(($extent + 2 * $pad - $size) / $stride) + 1;
  my $w = port([$to, $from / $groups, $size, $size]);
  my $y = op("conv $x, $w, pads=[$pad,$pad,$pad,$pad], stride=[$stride,$stride], groups=$groups");
  return [norm($y, $to, 1, $to, $out, $out), $to, $out];
}
sub dense { my ($x, $rows, $from, $to) = @_; my $y = op("matmul $x, " . port([$from, $to])); return op("add $y, " . spread(port([$to]), 1, $rows, $to)) }
sub relu { my ($t) = @_; return [op("relu $t->[0]"), @$t[1, 2]] }

sub minilm {
  my ($layers, $rows, $width, $heads) = (6, 128, 384, 12);
  my $each = $width / $heads;
  my $x = port([$rows, $width]);
  for (1 .. $layers) {
    my %h;
    for my $part (qw(q k v)) {
      my $r = op('reshape ' . dense($x, $rows, $width, $width) . ", shape=[$rows,$heads,$each]");
      $h{$part} = op("transpose $r, perm=[1,0,2]");
    }
    my $s = op("mul " . op("matmul $h{q}, $h{k}, transpose_b") . ", 0.1767767");
    my $c = op('transpose ' . op('matmul ' . op("softmax $s, axis=2") . ", $h{v}") . ', perm=[1,0,2]');
    my $o = dense(op("reshape $c, shape=[$rows,$width]"), $rows, $width, $width);
    my $n = op('layernorm ' . op("add $o, $x") . ', ' . port([$width]) . ', ' . port([$width]) . ', axis=1');
    my $f = dense(op('gelu ' . dense($n, $rows, $width, 4 * $width)), $rows, 4 * $width, $width);
    $x = op('layernorm ' . op("add $f, $n") . ', ' . port([$width]) . ', ' . port([$width]) . ', axis=1');
  }
  return graph('minilm', y => $x);
}

sub resnet50 {
  my $t = relu(conv([port([1, 3, 224, 224]), 3, 224], 64, 7, 2, 1));
  $t = [op("maxpool $t->[0], size=[3,3], stride=[2,2], pads=[1,1,1,1]"), 64, 56];
  my ($blocks, $width) = ([3, 4, 6, 3], 64);
  for my $stage (0 .. 3) {
    for my $block (1 .. $blocks->[$stage]) {
      my $stride = $block == 1 && $stage ? 2 : 1;
      my $y = relu(conv($t, $width, 1, 1, 1));
      $y = conv(relu(conv($y, $width, 3, $stride, 1)), 4 * $width, 1, 1, 1);
      my $around = $block == 1 ? conv($t, 4 * $width, 1, $stride, 1) : $t;
      $t = relu([op("add $y->[0], $around->[0]"), @$y[1, 2]]);
    }
    $width *= 2;
  }
  my $p = op('reshape ' . op("global_avgpool $t->[0]") . ', shape=[1,2048]');
  return graph('resnet50', y => dense($p, 1, 2048, 1000));
}

sub mobilenet_v2 {
  my $clip = sub { my ($t) = @_; return [op("relu6 $t->[0]"), @$t[1, 2]] };
  my $t = $clip->(conv([port([1, 3, 224, 224]), 3, 224], 32, 3, 2, 1));
  for ([1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]) {
    my ($expand, $to, $count, $first) = @$_;
    for my $i (1 .. $count) {
      my ($stride, $wide) = ($i == 1 ? $first : 1, $expand * $t->[1]);
      my $y = $expand == 1 ? $t : $clip->(conv($t, $wide, 1, 1, 1));
      $y = conv($clip->(conv($y, $wide, 3, $stride, $wide)), $to, 1, 1, 1);
      $t = $stride == 1 && $t->[1] == $to ? [op("add $y->[0], $t->[0]"), @$y[1, 2]] : $y;
    }
  }
  $t = $clip->(conv($t, 1280, 1, 1, 1));
  my $p = op('reshape ' . op("global_avgpool $t->[0]") . ', shape=[1,1280]');
  return graph('mobilenet_v2', y => dense($p, 1, 1280, 1000));
}

sub swiglu {
  my $x = port([256, 768]);
  my ($a, $b) = map { op("matmul $x, " . port([768, 2048])) } 1, 2;
  my $h = op('mul ' . op("silu $a") . ", $b");
  return graph('swiglu', y => op("matmul $h, " . port([2048, 768])));
}

sub attention {
  my ($q, $k, $v) = map { port([12, 512, 64]) } 1 .. 3;
  my $s = op('mul ' . op("matmul $q, $k, transpose_b") . ', 0.125');
  return graph('attention', y => op('matmul ' . op("softmax $s, axis=2") . ", $v"));
}

sub postprocess { open my $in, '<', 'examples/postprocess.snt' or die $!; local $/; return <$in> }

my @models = (    # name, text, most kernels
  ['minilm', \&minilm, 6 * 8], ['resnet50', \&resnet50, 60], ['mobilenet_v2', \&mobilenet_v2, 60],
  ['postprocess', \&postprocess, 3], ['swiglu', \&swiglu, 2], ['attention', \&attention, 1],
);
for my $model (@models) {
  my ($name, $make, $most) = @$model;
  begin();
  open my $out, '>', "$dir/$name.snt" or die $!;
  print $out $make->();
  close $out;
  for my $profile (qw(pocl lavapipe igpu dgpu mobile h100)) {
    my $said = `$sinter explain $dir/$name.snt --profile $profile --no-rewrites 2>&1`;
    my ($kernels) = $said =~ /^(\d+) kernels?/;
    ok(defined $kernels && $kernels <= $most, "$name on $profile: " . ($kernels // 'no') . " kernels, at most $most") or diag(substr $said, 0, 400);
  }
}
done_testing;
